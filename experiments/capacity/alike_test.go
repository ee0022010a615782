package capacity

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

// everything is a watcher that keeps all that it is told.
type everything struct {
	ends
	gaps []des.Time
}

func (e *everything) Gap(t des.Time) { e.gaps = append(e.gaps, t) }

// hashOf is boundedOf's hash of points with one arrival process.
func hashOf(p *config.Point) (string, error) {
	text, err := p.TOML()
	return string(text), err
}

// A run that is taken for that of other limits on a batch is that run, to the last token. Where
// limits are reached, other limits do change it.
func TestRunsOfLimitsNotReachedAreTheSame(t *testing.T) {
	simulate := run.NewSimulator().Run
	n, same, other := 0, 0, 0
	rapid.Check(t, func(r *rapid.T) {
		if n++; n > 40 { // each makes two runs
			return
		}
		draw := func(name string, of ...string) string { return rapid.SampledFrom(of).Draw(r, name) }
		// In half of the pairs there is room for all requests at once, so that no limit is reached.
		requests, tokens := []int{3, 12, 30, 700, 1500}, []int{4, 16, 512, 2048}
		utilisation := []float64{0.43, 0.44, 0.45, 0.46}
		if n%2 == 0 {
			requests, tokens, utilisation = []int{25, 50, 700, 1500}, []int{512, 2048}, []float64{0.9}
		}
		text := fmt.Sprintf(`model = "llama3.1-8b"
gpu = "a100-40gb"
[workload]
prompt_lengths = "lognormal(%d, 1, 6000)"
output_lengths = "uniform(20, 100)"
rate = %g
requests = 20
[fleet]
replicas = %s
router = %q
[system]
preset = %q
utilisation = %g
max_requests = 1
max_tokens = 16
[slo]
ttft_s = 1
`, rapid.SampledFrom([]int{500, 1000, 1500}).Draw(r, "median"),
			rapid.SampledFrom([]float64{3, 100, 200}).Draw(r, "rate"),
			draw("replicas", "1", "2"), draw("router", "least-tokens", "least-working-set"),
			draw("preset", "vllm", "vllm-0.15", "vllm-s", "vllm-so", "sparseserve",
				"sparseserve-psa"),
			rapid.SampledFrom(utilisation).Draw(r, "utilisation"))
		point := pointOf(t, text)
		var made [2]struct {
			run   madeRun
			seen  everything
			point config.Point
		}
		for i := range made {
			m := &made[i]
			m.point = point
			s := &m.point.System
			s.MaxRequests = rapid.SampledFrom(requests).Draw(r, "requests")
			if i == 0 || rapid.IntRange(0, 3).Draw(r, "other tokens") == 0 {
				s.MaxTokens = rapid.SampledFrom(tokens).Draw(r, "tokens")
			} else {
				s.MaxTokens = made[0].point.System.MaxTokens
			}
			var err error
			if m.run.limit, err = boundedOf(&m.point, hashOf); err != nil {
				return // no HBM is left
			}
			sum, err := simulate(context.Background(), m.point, run.Sink{Watch: &m.seen})
			if err != nil {
				return // a request for which there is no HBM
			}
			m.run.reach = sum.Reach
		}
		var a alike
		a.keep(made[0].run)
		equal := reflect.DeepEqual(made[0].seen, made[1].seen)
		if _, found := a.find(&made[1].run.limit, false); !found {
			if !equal {
				other++
			}
			return
		}
		if made[0].point.System != made[1].point.System {
			same++
		}
		if !equal {
			r.Fatalf("%+v is taken for %+v and differs\n%s", made[0].run.limit, made[1].run.limit, text)
		}
	})
	if same == 0 || other == 0 {
		t.Errorf("%d runs were taken for others, %d differ by their limits: want some of each",
			same, other)
	}
}

// A plan whose candidates share runs has the files of one in which each makes its own, and makes
// fewer.
func TestSharedRunsChangeNothing(t *testing.T) {
	text := strings.Replace(fmt.Sprintf(short, "rate = 2", "ttft_s = 1\ntbt_s = 0.2"),
		`["a100-40gb", "a100-80gb", "h100-80gb", "h200"]`, `["a100-40gb", "h200"]`, 1) +
		"grid.system.max_requests = [2, 32, 64]\ngrid.system.max_tokens = [1024, 4096]\n" +
		"[[axis]]\ngrid.system.preset = [\"vllm-0.15\", \"sparseserve\"]\n"
	text = strings.Replace(text, "tensor_parallel = [1, 2]", "tensor_parallel = [1]", 1)
	simulate := run.NewSimulator().Run
	alone := func(ctx context.Context, p config.Point, sink run.Sink) (sim.Summary, error) {
		sum, err := simulate(ctx, p, sink)
		sum.Reach = nil
		return sum, err
	}
	dir := t.TempDir()
	var trees []map[string]string
	var runs []int64
	for i, runner := range []run.Runner{alone, simulate, simulate} {
		runner, made := tallied(runner)
		at := filepath.Join(dir, fmt.Sprint(min(i, 1))) // the third finds what the second kept
		a, _ := purchase(t, at, text, 2, runner)
		answer, err := a.Files()
		if err := written(filepath.Join(at, "out"), answer, err); err != nil {
			t.Fatal(err)
		}
		tree := testkit.Tree(t, filepath.Join(at, "out"))
		for path, text := range tree { // warnings name the file of the plan
			tree[path] = strings.ReplaceAll(text, at, "")
		}
		trees = append(trees, tree)
		runs = append(runs, made.Load())
	}
	testkit.SameTree(t, trees[0], trees[1])
	testkit.SameTree(t, trees[0], trees[2])
	if runs[1] > runs[0]*4/5 || runs[2] > 0 {
		t.Errorf("%d runs are made alone, %d where they are shared, %d again", runs[0], runs[1], runs[2])
	}
}

// What is not known of a run, or made it end early, is no run of another.
func TestUnknownRunsAreNotShared(t *testing.T) {
	limit := bounded{family: "f", requests: 8, each: 1, hbm: 4}
	came := &sim.Reach{Requests: 7, HBM: 3}
	for _, c := range []struct {
		made  madeRun
		asked bounded
		whole bool
		want  bool
	}{
		{madeRun{reach: came}, limit, false, true},
		{madeRun{reach: &sim.Reach{Requests: 8}}, limit, false, false},
		{madeRun{}, limit, false, false},
		{madeRun{reach: &sim.Reach{Requests: 7, Short: true}}, limit, false, false},
		{madeRun{reach: came}, limit, true, false},
		{madeRun{reach: came}, bounded{family: "g", requests: 8, hbm: 4}, false, false},
		{madeRun{reach: came}, bounded{family: "f", requests: 7, hbm: 4}, false, false},
		{madeRun{reach: came}, bounded{family: "f", requests: 9, hbm: 2}, false, false},
		{madeRun{reach: came}, bounded{family: "f", requests: 9, hbm: 3}, false, true},
	} {
		var a alike
		c.made.limit = limit
		a.keep(c.made)
		if _, ok := a.find(&c.asked, c.whole); ok != c.want {
			t.Errorf("%+v for %+v, whole %v: %v", c.made, c.asked, c.whole, ok)
		}
	}
}

// A run that HBM was short for says so, and one that it was not short for how much it took.
func TestRunsSayWhatTheyCameTo(t *testing.T) {
	simulate := run.NewSimulator().Run
	for _, preset := range []string{"vllm", "vllm-0.15", "vllm-so", "sparseserve"} {
		for gpu, short := range map[string]bool{"a100-40gb": true, "a100-80gb": false} {
			p := pointOf(t, fmt.Sprintf(`model = "llama3.1-8b"
gpu = %q
[workload]
prompt_lengths = "fixed(3000)"
output_lengths = "fixed(60)"
rate = 500
requests = 20
[system]
preset = %q
utilisation = 0.45
max_requests = 30
max_tokens = 2048
[slo]
ttft_s = 1
`, gpu, preset))
			limit, err := boundedOf(&p, hashOf)
			if err != nil {
				t.Fatal(err)
			}
			sum, err := simulate(t.Context(), p, run.Sink{})
			if err != nil {
				t.Fatal(err)
			}
			r := sum.Reach
			if r.Short != short || r.Requests > 20 || !short && r.Requests != 20 || r.HBM > limit.hbm {
				t.Errorf("%s on %s: %+v of %d bytes", preset, gpu, *r, limit.hbm)
			}
			// 20 requests at most of 192 blocks of 16 tokens and 2 MiB, or a little less at one time
			if most := int64(20*192+1) * 2 << 20; !p.System.Offload.On && !short &&
				(r.HBM > most*102/100 || r.HBM < most*9/10) {
				t.Errorf("%s on %s: %d bytes would be enough, want nearly %d", preset, gpu, r.HBM, most)
			}
		}
	}
}

// A run that was cut has seen no request that waited through, so that less HBM than it had may
// refuse one: it is not that of a candidate with less. A whole run is, of as much as it needed.
func TestCutRunsAreNotThoseOfLessHBM(t *testing.T) {
	made := madeRun{limit: bounded{family: "f", requests: 64, hbm: 100},
		reach: &sim.Reach{Requests: 3, HBM: 40}}
	for _, c := range []struct {
		cut  string
		hbm  int64
		want bool
	}{{"", 100, true}, {"", 40, true}, {"", 39, false}, {"ttft", 100, true}, {"ttft", 99, false}} {
		var a alike
		made.cut = c.cut
		a.keep(made)
		if _, ok := a.find(&bounded{family: "f", requests: 128, hbm: c.hbm}, false); ok != c.want {
			t.Errorf("cut %q, a candidate of %d bytes: %v, want %v", c.cut, c.hbm, ok, c.want)
		}
	}
}

// A plan that was interrupted and goes on has kept the files of one that was not.
func TestInterruptedPurchaseKeepsTheSameFiles(t *testing.T) {
	text := strings.Replace(fmt.Sprintf(short, "rate = 2", "ttft_s = 1\ntbt_s = 0.2"),
		`["a100-40gb", "a100-80gb", "h100-80gb", "h200"]`, `["a100-40gb", "h200"]`, 1) +
		"grid.system.max_requests = [2, 32, 64]\n"
	text = strings.Replace(text, "tensor_parallel = [1, 2]", "tensor_parallel = [1]", 1)
	simulate := run.NewSimulator().Run
	dir := t.TempDir()
	write(t, filepath.Join(dir, "plan.toml"), text)
	s, err := config.LoadPlan(filepath.Join(dir, "plan.toml"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	buy := func(at string, last int64) (made int64) {
		t.Helper()
		store, err := run.OpenStore(filepath.Join(dir, at), "test", true)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		runner := func(ctx context.Context, p config.Point, sink run.Sink) (sim.Summary, error) {
			if made == last {
				cancel()
				return sim.Summary{}, context.Canceled
			}
			made++
			return simulate(ctx, p, sink)
		}
		p := Planner{Store: store, Run: runner, Workers: 1}
		offers, err := OffersOf(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := p.Purchase(ctx, offers); (err == nil) != (last < 0) {
			t.Fatal(err)
		}
		return made
	}
	all := buy("whole", -1)
	whole := testkit.Tree(t, filepath.Join(dir, "whole"))
	same := 0
	for path := range whole {
		if strings.HasSuffix(path, ".same") {
			same++
		}
	}
	if all < 4 || same == 0 {
		t.Fatalf("%d runs, %d of them shared", all, same)
	}
	for _, last := range []int64{all / 3, 2 * all / 3} {
		at := fmt.Sprint(last)
		first := buy(at, last)
		if again := buy(at, -1); first+again != all {
			t.Errorf("interrupted after %d of %d runs: %d more", first, all, again)
		}
		testkit.SameTree(t, whole, testkit.Tree(t, filepath.Join(dir, at)))
	}
}
