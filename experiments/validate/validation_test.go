package validate

import (
	"errors"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/emulator"
	"github.com/sparseserve/sparseserve/cuda/live"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/hw/cost"
)

// tinyValidation validates the tiny model in dir. Runs is how many machines it
// asks for; the failing one, counted from 1, is out of order.
func tinyValidation(t *testing.T, dir string, runs *int, failing int) *Validation {
	t.Helper()
	sweep, err := config.LoadSweep(t.Context(), "../validate-tiny.toml",
		[]string{`model="../testdata/tiny"`, "workload.requests=3"})
	if err != nil {
		t.Fatal(err)
	}
	*runs = -1 // the first asks for the name
	simulator := run.NewSimulator()
	return &Validation{
		Dir: dir, Sweep: sweep, Program: "test", LiveProgram: "live test", Simulate: simulator.Run,
		Workers: 1,
		Live: &run.Live{Simulator: simulator, SplitEvery: 2, On: func(do func(live.Machine) error) error {
			if *runs++; *runs == failing && failing > 0 {
				return errors.New("out of order")
			}
			return do(emulator.New(emulator.Config{}))
		}},
	}
}

// savers is a machine that notes how many threads savers are given.
type savers struct {
	live.Machine
	threads *[]int
}

func (m savers) SaverCreate(threads int, chunkBytes int64, stages int) (cuda.Saver, error) {
	*m.threads = append(*m.threads, threads)
	return m.Machine.SaverCreate(threads, chunkBytes, stages)
}

// A live run saves with as many threads as its simulation.
func TestLiveSavesWithTheSimulatedThreads(t *testing.T) {
	var runs int
	v := tinyValidation(t, t.TempDir(), &runs, 0)
	var got []int
	v.Live.(*run.Live).On = func(do func(live.Machine) error) error {
		return do(savers{emulator.New(emulator.Config{}), &got})
	}
	if _, _, err := v.Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	const want = cost.ScatterThreads
	if len(got) == 0 || slices.ContainsFunc(got, func(n int) bool { return n != want }) {
		t.Errorf("savers of %d threads, want %d each", got, want)
	}
}

// checkTiny checks what does not depend on how fast this machine is.
func checkTiny(t *testing.T, r *Report) {
	t.Helper()
	if r.Device != "reference device in Go" || len(r.Runs) != 5 {
		t.Fatalf("%d runs on %q", len(r.Runs), r.Device)
	}
	for i := range r.Runs {
		run := &r.Runs[i]
		if run.Live.Completed != 3 || run.Simulated.Completed != 3 || run.Live.TTFT.Mean <= 0 {
			t.Errorf("%s: %d and %d requests completed", run.Run, run.Live.Completed,
				run.Simulated.Completed)
		}
		for _, metric := range []string{"ttft_mean_s", "tbt_p99_s", "steps", "step_decode_ratio",
			"step_mixed_abs_error_p95", "phase_decode_linears_s"} {
			if c, ok := run.Of(metric); !ok || c.Error == nil {
				t.Errorf("%s: %s is %+v", run.Run, metric, c)
			}
		}
		rounds, ok := run.Of("rounds_per_layer")
		if _, too := run.Of("blocks_ahead_per_step"); ok != (run.System == "sparseserve-psa") ||
			too != ok || ok && rounds.Live <= 1 {
			t.Errorf("%s: rounds %+v", run.Run, rounds)
		}
	}
}
