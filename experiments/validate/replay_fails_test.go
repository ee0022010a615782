package validate

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/traces/records"
)

// Nothing is left of a simulation that did not finish.
func TestReplayFails(t *testing.T) {
	one := records.Request{Prompt: 10, Output: 5, TTFT: 1, E2E: 2}
	long := records.Request{Prompt: 2000, Output: 5, TTFT: 1, E2E: 2}
	broken := func(context.Context, config.Point, run.Sink) (sim.Summary, error) {
		return sim.Summary{}, errors.New("boom")
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
			r.Config.Systems[0].PrefixCache.Mode = sim.PrefixVLLM
			return r
		}(),
	} {
		if _, err := r.Do(t.Context()); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if _, err := os.Stat(r.Dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the folder is left, %v", want, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := replayOf(t, run.NewSimulator().Run, one).Do(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// What --force was to replace stays as it was where the new comparison fails.
func TestReplayFailsOverResults(t *testing.T) {
	one := records.Request{Prompt: 10, Output: 5, TTFT: 1, E2E: 2}
	two := records.Request{Prompt: 20, Output: 6, TTFT: 1, E2E: 2}
	first := replayOf(t, fixed(1, 2), one)
	if _, err := first.Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := filesIn(t, first.Dir)
	second := replayOf(t, func(context.Context, config.Point, run.Sink) (sim.Summary, error) {
		return sim.Summary{}, errors.New("boom")
	}, two)
	second.Dir, second.Replace = first.Dir, true
	if _, err := second.Do(t.Context()); err == nil {
		t.Fatal("no error")
	}
	if after := filesIn(t, first.Dir); !maps.Equal(before, after) {
		t.Errorf("before:\n%v\nafter:\n%v", before, after)
	}
	if _, err := first.Do(t.Context()); err != nil {
		t.Errorf("the first comparison does not go on: %v", err)
	}
}

// filesIn reads the files of a folder.
func filesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(text)
	}
	return files
}
