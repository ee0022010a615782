package validate

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/traces/records"
)

// No results are left of a simulation that did not finish.
func TestReplayFails(t *testing.T) {
	one := records.Request{Prompt: 10, Output: 5, TTFT: 1, E2E: 2}
	long := records.Request{Prompt: 2000, Output: 5, TTFT: 1, E2E: 2}
	broken := func(context.Context, config.Point, run.Sink) (metrics.Summary, error) {
		return metrics.Summary{}, errors.New("boom")
	}
	for want, r := range map[string]*Replay{
		config.ServerPreset + "-trace-s1: boom": replayOf(t,
			broken, one),
		"the simulated server rejected all 1 requests; does llama2-7b on h100-80gb": replayOf(t,
			fixed(1, 2), long),
		"--skip 5: leaves out all 1 requests; the last arrived at 0 s": func() *Replay {
			r := replayOf(t, fixed(1, 2), one)
			r.Skip = 5
			return r
		}(),
		`prefix_cache.mode = "vllm": the record has no column`: func() *Replay {
			r := replayOf(t, fixed(1, 2), one)
			r.Config.System.PrefixCache.Mode = sim.PrefixVLLM
			return r
		}(),
	} {
		if _, err := r.Do(t.Context()); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if _, err := os.Stat(filepath.Join(r.Dir, compareJSON)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: results are left, %v", want, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := replayOf(t, run.NewSimulator().Run, one).Do(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
