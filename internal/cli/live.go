package cli

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/emulator"
	"github.com/sparseserve/sparseserve/cuda/live"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/files"
)

// liveMode selects what executes the steps: the model of a card (""), the GPU of this machine, or
// the Go reference.
type liveMode string

const (
	liveGPU       liveMode = "gpu"
	liveReference liveMode = "reference"
)

// IsBool permits --live without a value.
func (liveMode) IsBool() bool { return true }

// Decode implements kong.MapperValue.
func (m *liveMode) Decode(ctx *kong.DecodeContext) error {
	*m = liveGPU
	if ctx.Scan.Peek().Type != kong.FlagValueToken {
		return nil
	}
	*m = liveMode(fmt.Sprint(ctx.Scan.Pop().Value))
	if *m != liveGPU && *m != liveReference {
		return fmt.Errorf("want gpu or reference, got %q", string(*m))
	}
	return nil
}

// liveFlags are the flags of commands that can run on a live device.
type liveFlags struct {
	Live       liveMode `help:"Run on the GPU of this machine (--live=gpu, the same as --live), or on a reference in Go that is fit for tiny models (--live=reference)."`
	Weights    string   `placeholder:"DIR" help:"With --live: a folder of safetensors with its config.json. Default: drawn from the seed."`
	Select     string   `enum:"process,model" default:"process" help:"With --live: who selects blocks for sparse attention: the score process, as in the simulation (process), or the model's own metadata (model). The same choice sets the vertical-slash lines of sparse prefill: as the cost model assumes them, or as the model's indices find them. Default: ${default}."`
	Record     string   ` placeholder:"FILE" help:"With --live: write what every decode of the run selects; selection.recording = \"FILE\" replays it."`
	Pace       bool     `help:"With --live: wait out the gaps in which no request runs. Default: skip them."`
	SplitEvery int64    `hidden:"" placeholder:"N" default:"${splitEvery}" help:"With --live: every n-th step is split into phases by GPU events, which cost some time. Default: ${default}."`
}

// splitEvery is the default of --split-every.
const splitEvery = 16

// runner returns the runner for n points, and the number of points it runs at a time (0: any).
func (f *liveFlags) runner(app *App, points int) (simulate run.Runner, workers int, err error) {
	if f.Live == "" {
		for _, only := range []struct {
			flag string
			set  bool
		}{{"--weights", f.Weights != ""}, {"--select", f.Select == "model"},
			{"--record", f.Record != ""}, {"--pace", f.Pace},
			{"--split-every", f.SplitEvery != splitEvery}} {
			if only.set {
				return nil, 0, fmt.Errorf("%s is for --live", only.flag)
			}
		}
		return app.Run, 0, nil
	}
	if f.Record != "" && points > 1 {
		return nil, 0, fmt.Errorf("--record: a recording holds one run, this is %d; choose "+
			"one system, rate and seed", points)
	}
	l, err := f.machine()
	if err != nil {
		return nil, 0, err
	}
	return l.Run, 1, nil
}

// machine returns the live runner.
func (f *liveFlags) machine() (*run.Live, error) {
	if f.SplitEvery < 0 {
		return nil, fmt.Errorf("--split-every %d: must be 0 or more", f.SplitEvery)
	}
	l := &run.Live{Simulator: run.NewSimulator(), Weights: f.Weights,
		SplitEvery: f.SplitEvery, On: onGPU,
		Selects: f.Select == "model", Record: f.Record, Pace: f.Pace, HostBytes: hostMemory(),
		Pinned: &live.Pinned{Most: hostMemory()}}
	if f.Live == liveReference {
		l.Pinned = nil // every run has a machine of its own
		l.On = func(do func(live.Machine) error) error { return do(emulator.New(emulator.Config{})) }
	}
	return l, nil
}

// onGPU runs f on the library's thread, with the first GPU selected.
func onGPU(f func(live.Machine) error) error {
	library, err := cuda.Open("")
	if err != nil {
		return err
	}
	defer library.Close()
	return library.Do(func(s *cuda.Session) error {
		if err := s.Init(0); err != nil {
			return err
		}
		return f(s)
	})
}

// hostMemory returns the available host memory in bytes; 0 if unknown.
func hostMemory() int64 {
	text, err := files.ReadText("/proc/meminfo")
	if err != nil {
		return 0
	}
	for _, line := range strings.Split(string(text), "\n") {
		var kib int64
		if n, _ := fmt.Sscanf(line, "MemAvailable: %d kB", &kib); n == 1 {
			return kib << 10
		}
	}
	return 0
}
