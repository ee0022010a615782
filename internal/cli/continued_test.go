package cli

import (
	"context"
	"os"
	"sync/atomic"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// A sweep or plan of two workers that is interrupted, within runs, and given again leaves the files
// of one that ran through.
func TestInterruptedWorkersGoOn(t *testing.T) {
	simulate := run.NewSimulator().Run
	t.Chdir(t.TempDir())
	const load = "model = \"llama3-8b\"\ngpu = \"h200\"\n[workload]\ntrace = \"synthetic\"\n" +
		"prompt_lengths = \"fixed(2000)\"\noutput_lengths = \"fixed(10)\"\nrequests = 20\nrate = 5\n" +
		"[slo]\nttft_s = 0.5\n[goodput]\nwidth = 0.5\nstart = 8\n[system]\npreset = "
	writeFile(t, "s.toml", "seed = [1, 2]\n"+load+"[\"vllm\", \"sparseserve\"]\n[[axis]]\n"+
		"grid.simulation.groups = [4, 8]\n")
	writeFile(t, "p.toml", "seed = [1, 2]\n"+load+"[\"vllm\", \"sparseserve\"]\n")
	writeFile(t, "b.toml", load+"\"vllm\"\nmax_tokens = 4096\n[plan]\nprices = \"mid\"\n[[axis]]\n"+
		"grid.gpu = [\"h100-80gb\", \"h200\"]\n")
	for _, c := range []struct{ command, file string }{{"simulate", "s.toml"}, {"goodput", "p.toml"},
		{"plan", "b.toml"}} {
		args := func(out string) []string {
			return []string{c.command, c.file, "--workers", "2", "--out", out}
		}
		if status, _, errs := runHere(t.Context(), simulate, args("whole")...); status != exitOK {
			t.Fatal(errs)
		}
		for _, after := range []int64{1, 4} {
			ctx, cancel := context.WithCancel(t.Context())
			var ended atomic.Int64
			interrupts := func(ctx context.Context, p config.Point, s run.Sink) (metrics.Summary, error) {
				if ended.Load() >= after {
					cancel() // within a run, while another may be running
				}
				sum, err := simulate(ctx, p, s)
				ended.Add(1)
				return sum, err
			}
			status, _, errs := runHere(ctx, interrupts, args("again")...)
			cancel()
			if status != Interrupted {
				t.Errorf("%v after %d runs: status %d, %s", c, after, status, errs)
			}
			if status, _, errs := runHere(t.Context(), simulate, args("again")...); status != exitOK {
				t.Fatal(errs)
			}
			compareFolders(t, "whole", "again", 6)
			if t.Failed() {
				t.Fatalf("%v after %d runs", c, after)
			}
			if err := os.RemoveAll("again"); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.RemoveAll("whole"); err != nil {
			t.Fatal(err)
		}
	}
}
