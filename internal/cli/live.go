package cli

import (
	"errors"
	"fmt"

	"github.com/alecthomas/kong"

	"sparseserve/cuda"
	"sparseserve/cuda/live"
	"sparseserve/cuda/soft"
	"sparseserve/experiments"
)

// liveMode says what carries out the steps: the model of a card (""), the GPU
// of this machine, or its reference in Go.
type liveMode string

const (
	liveGPU       liveMode = "gpu"
	liveReference liveMode = "reference"
)

// IsBool lets --live stand alone.
func (liveMode) IsBool() bool { return true }

// Decode implements kong.MapperValue.
func (m *liveMode) Decode(ctx *kong.DecodeContext) error {
	if ctx.Scan.Peek().Type != kong.FlagValueToken {
		*m = liveGPU
		return nil
	}
	var value string
	if err := ctx.Scan.PopValueInto("live", &value); err != nil {
		return err
	}
	switch *m = liveMode(value); *m {
	case liveGPU, liveReference:
		return nil
	case "true":
		*m = liveGPU
		return nil
	case "false":
		*m = ""
		return nil
	}
	return fmt.Errorf("want gpu or reference, got %q", value)
}

// liveFlags are the flags of commands that can run on a machine that computes.
type liveFlags struct {
	Live       liveMode `help:"Run on the GPU of this machine (--live=gpu, the same as --live), or on a reference in Go that is fit for tiny models (--live=reference)."`
	Weights    string   `placeholder:"DIR" help:"With --live: a folder of safetensors with its config.json. Default: drawn from the seed."`
	SplitEvery int64    `placeholder:"N" default:"16" help:"With --live: every n-th step is split into phases by GPU events, which cost some time."`
}

// runner returns what carries out a point, and how many at a time (0: any).
func (f *liveFlags) runner(app *App) (run experiments.Runner, workers int, err error) {
	if f.Live == "" {
		if f.Weights != "" {
			return nil, 0, errors.New("--weights is for --live")
		}
		return app.Run, 0, nil
	}
	l, err := f.machine()
	if err != nil {
		return nil, 0, err
	}
	return l.Run, 1, nil
}

// machine returns what runs live.
func (f *liveFlags) machine() (*experiments.Live, error) {
	if f.SplitEvery < 0 {
		return nil, fmt.Errorf("--split-every %d: must be 0 or more", f.SplitEvery)
	}
	l := &experiments.Live{Simulator: experiments.NewSimulator(), Weights: f.Weights, SplitEvery: f.SplitEvery, On: onGPU}
	if f.Live == liveReference {
		l.On = func(do func(live.Machine) error) error { return do(soft.New(soft.Config{})) }
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
