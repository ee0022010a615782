package whatif

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/capacity"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// small is a configuration whose runs take milliseconds.
const small = `model = "llama3-8b"
gpu = "a100-40gb"
seed = [1, 2, 3]

[workload]
trace = "synthetic"
prompt_lengths = "uniform(2000, 6000)"
output_lengths = "fixed(40)"
requests = 8
rate = 1

[system]
preset = "sparseserve"

[slo]
tbt_s = 0.5
delay_s = 2.0

[goodput]
start = 1
width = 0.4
`

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "small.toml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// simulator has recorded streams that all tests share.
var simulator = sync.OnceValue(run.NewSimulator)

func newPlanner(t *testing.T) *capacity.Planner {
	t.Helper()
	store, err := run.OpenStore(t.TempDir(), "test", true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return &capacity.Planner{Store: store, Run: simulator().Run}
}

func carryOut(t *testing.T, s *Study) *Result {
	t.Helper()
	found, err := s.Do(t.Context(), newPlanner(t))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// plain makes the runs of a configuration as simulate does.
func plain(t *testing.T, path string, sets ...string) []metrics.Summary {
	t.Helper()
	cfg, err := config.Load(path, sets)
	if err != nil {
		t.Fatal(err)
	}
	grid := run.Grid{Run: simulator().Run}
	results, err := grid.Do(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return run.Summaries(results)
}

// withoutSearch is the configuration less its [goodput] table, which simulate refuses.
func withoutSearch() string {
	text, _, _ := strings.Cut(small, "\n[goodput]")
	return text
}

// What a knob sets to what there is gives what there is, to the last digit: of runs that of
// simulate, of goodput that of plan.
func TestNothingChanged(t *testing.T) {
	e, alone := newPlanner(t), plain(t, write(t, withoutSearch()))
	for _, name := range []string{"ttft_mean", "tbt_p99", "throughput"} {
		m, err := MetricNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		study := Study{Config: write(t, small), Metric: name,
			Vary: []string{"link=1,2", "hbm=1", "compute=1,0.5", "dram=1", "budget=2048",
				"offload.on=true"}}
		found, err := study.Do(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		c := found.Cases[0]
		for i, s := range alone {
			if got := c.Base.Seeds[i]; got != m.of(&s) {
				t.Errorf("%s of seed %d: %v, simulate has %v", name, i, got, m.of(&s))
			}
		}
		for _, k := range c.Knobs {
			if p := k.Points[0]; p.Change != 0 || p.Value.Value != c.Base.Value ||
				!slices.Equal(p.Seeds, c.Base.Seeds) {
				t.Errorf("%s = %s changes %s from %v to %v", k.Knob, p.Setting, name, c.Base, p.Value)
			}
		}
		if p := c.Knobs[2].Points[1]; p.Change == 0 {
			t.Errorf("half the arithmetic peak changes nothing of %s", name)
		}
	}
}

// A knob that no server of the configuration uses is said to have no effect, once.
func TestVariedKeysWithoutEffect(t *testing.T) {
	for knob, want := range map[string]string{"link=0.5,2": "--vary: card.link_d2h = ",
		"selection.policy=quest,infllm": `--vary: selection.policy = "quest": has no effect in any`,
		"hbm_bandwidth=0.5":             ""} {
		found := carryOut(t, &Study{Config: write(t, withoutSearch()), Metric: "ttft_mean",
			Set:  []string{"system.preset=vllm", "workload.requests=2", "seed=[1]"},
			Vary: []string{knob}})
		said := strings.Join(found.Notes, "\n")
		if n := strings.Count(said, "no effect"); want == "" && n > 0 ||
			want != "" && (!strings.HasPrefix(said, want) || n > 2) {
			t.Errorf("%s: %s", knob, said)
		}
	}
}

func TestGoodputIsThatOfPlan(t *testing.T) {
	path := write(t, small)
	found := carryOut(t,
		&Study{Config: path, Metric: GoodputMetric, Vary: []string{"link=1", "compute=0.25"}})
	sweep, err := config.LoadPlan(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	candidates, err := capacity.Candidates(t.Context(), sweep)
	if err != nil {
		t.Fatal(err)
	}
	e := newPlanner(t)
	planner := capacity.Planner{Store: e.Store, Run: e.Run}
	plan, err := planner.Do(t.Context(), sweep.Goodput, candidates)
	if err != nil {
		t.Fatal(err)
	}
	c := found.Cases[0]
	if p := c.Knobs[0].Points[0]; p.Value.Value != plan[0].Goodput ||
		!slices.Equal(p.Seeds, plan[0].SeedGoodputs) || p.Low == nil || *p.Low != 0 {
		t.Errorf("%+v, plan has %v of %v", p, plan[0].Goodput, plan[0].SeedGoodputs)
	}
	if p := c.Knobs[1].Points[0]; !(p.Change < 0) {
		t.Errorf("a quarter of the peak: goodput %v from %v", p.Value.Value, c.Base.Value)
	}
}

// Hits in a prefix cache are asked of what has one, or of what a knob gives one.
func TestPrefixHitsNeedACache(t *testing.T) {
	with := strings.Replace(small, `"sparseserve"`, `"vllm"`, 1)
	without := strings.Replace(with, "[slo]", "[prefix_cache]\nmode = \"off\"\n\n[slo]", 1)
	for _, c := range []struct{ text, vary, want string }{
		{without, "link=1,2", `--metric prefix_hits: prefix_cache.mode = "off"`},
		{without, "prefix_cache.mode=off,vllm", ""},
		{with, "hbm=1,2", ""},
	} {
		study := Study{Config: write(t, c.text), Metric: prefixHits, Vary: []string{c.vary}}
		err := study.Check(t.Context())
		if got := fmt.Sprint(err); (err == nil) != (c.want == "") || !strings.HasPrefix(got, c.want) &&
			err != nil {
			t.Errorf("%s: %v, want %q", c.vary, err, c.want)
		}
	}
}

// Of sessions rates are sessions/s, and without a cache none of their prompts hits.
func TestSessions(t *testing.T) {
	path := write(t, `model = "llama3-8b"
gpu = "h200"

[workload]
trace = "sessions"
rate = 2
prompt_lengths = "fixed(200)"
output_lengths = "fixed(50)"
think_s = 1

[sessions]
count = 8
turns = "fixed(3)"
system_lengths = "fixed(2000)"

[system]
preset = "vllm"

[prefix_cache]
mode = "vllm"
`)
	found := carryOut(t, &Study{Config: path, Metric: prefixHits,
		Vary: []string{"prefix_cache.mode=off"}})
	c := found.Cases[0]
	if got := c.Load(); got != "2 sessions/s" {
		t.Errorf("the load is %q", got)
	}
	off := c.Knobs[0].Points[0].Value.Value
	if c.Base.Value <= 0 || c.Base.Value >= 100 || off != 0 {
		t.Errorf("%g %% of the prompts hit, %g without a cache", c.Base.Value, off)
	}
}

// Without a key of [goodput], a tornado of goodput is a first look: one seed, within 5 %, and it
// begins at the configuration's value. With one it is what the key asks for.
func TestFirstLook(t *testing.T) {
	text, _, _ := strings.Cut(small, "[goodput]")
	text = strings.Replace(text, "seed = [1, 2, 3]\n", "", 1)
	look := func(sets ...string) (c *Case, notes string, runs int64) {
		e := newPlanner(t)
		count := &atomic.Int64{}
		e.Run = func(_ context.Context, p config.Point, _ run.Sink) (metrics.Summary, error) {
			count.Add(1)
			delay := 1.9
			if p.Workload.Rate > 1.3*float64(p.System.Offload.WorkingSetSteps)/12 { // nothing else decides
				delay = 2.1
			}
			return metrics.Summary{Requests: 8, Completed: 8, QueueDelay: metrics.Stats{Mean: delay}}, nil
		}
		found, err := (&Study{Config: write(t, text), Set: sets, Metric: GoodputMetric,
			Vary: []string{"window=24", "budget=1024"}}).Do(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		return found.Cases[0], strings.Join(found.Notes, "\n"), count.Load()
	}
	first, notes, runs := look()
	if len(first.Seeds) != 1 || !strings.Contains(notes, "a first look") {
		t.Errorf("seeds %v, notes %q", first.Seeds, notes)
	}
	window, budget := first.Knobs[0].Points[0], first.Knobs[1].Points[0]
	if math.Abs(window.Value.Value/2.6-1) > 0.05 || math.Abs(budget.Change) > 1e-9 {
		t.Errorf("window %+v, budget %+v", window, budget)
	}
	fine, notes, more := look("goodput.coarse=false")
	if len(fine.Seeds) != 3 || strings.Contains(notes, "a first look") || more < 3*runs {
		t.Errorf("seeds %v, notes %q, %d runs after %d", fine.Seeds, notes, more, runs)
	}
}

// A server that refuses more prompts than its service level allows has no goodput, which is said
// before anything runs.
func TestRefusedPromptsAreAnError(t *testing.T) {
	study := func(sets ...string) error {
		return (&Study{Config: write(t, small), Set: append(sets, "prefill.max_prompt_tokens=3000"),
			Metric: GoodputMetric, Vary: []string{"window=24"}}).Check(t.Context())
	}
	err := study("prefill.over_length=reject")
	if err == nil || !strings.Contains(err.Error(), "slo.miss_share = 0.01") ||
		!strings.Contains(err.Error(), "longer than prefill.max_prompt_tokens = 3000") {
		t.Error(err)
	}
	if err := study("prefill.over_length=truncate"); err != nil {
		t.Error(err)
	}
}
