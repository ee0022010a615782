package capacity

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

// ends is a watcher that keeps what becomes of each request, by ID.
type ends struct{ of []sim.RequestRecord }

func (e *ends) Ended(r *sim.RequestRecord) { e.of = append(e.of, *r) }
func (e *ends) Gap(des.Time)               {}
func (e *ends) Enough() error              { return nil }

// pointOf is the first point of a plan's text.
func pointOf(t testing.TB, text string) config.Point {
	t.Helper()
	path := filepath.Join(t.TempDir(), "plan.toml")
	write(t, path, text)
	s, err := config.LoadPlan(path, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	points, err := s.Points()
	if err != nil {
		t.Fatal(err)
	}
	return points[0].Point
}

// No request's first token comes before the floor of its prompt, and where the floors say that a
// run misses a bound, it does.
func TestNoFirstTokenBeforeItsFloor(t *testing.T) {
	simulate, late := run.NewSimulator().Run, 0
	rapid.Check(t, func(r *rapid.T) {
		draw := func(name string, of ...string) string { return rapid.SampledFrom(of).Draw(r, name) }
		text := fmt.Sprintf(`model = "llama3.1-8b"
gpu = %q
[workload]
prompt_lengths = "lognormal(%d, 1, 20000)"
output_lengths = "uniform(1, 8)"
rate = %g
requests = 30
[fleet]
replicas = %s
[system]
preset = %q
tensor_parallel = %s

[prefill]
max_prompt_tokens = %s
over_length = %q
[slo]
%s
`, draw("gpu", "a100-40gb", "h100-80gb", "h200"), rapid.IntRange(500, 8000).Draw(r, "median"),
			rapid.Float64Range(0.1, 20).Draw(r, "rate"), draw("replicas", "1", "3"),
			draw("preset", "vllm", "vllm-0.15", "sparseserve", "vllm-s"), draw("tp", "1", "2"),
			draw("longest", "0", "9000"), draw("longer", "truncate", "reject"),
			draw("slo", "ttft_s = 0.3\nttft_stat = \"p90\"", "ttft_s = 0.5", "e2e_s = 0.6",
				"rule = \"requests\"\nttft_s = 0.4\nmiss_share = 0.1", "ttft_s = 0.2\nttft_stat = \"p50\""))
		if !strings.Contains(text, "vllm-0.15") { // no other shares layers between GPUs
			text = strings.Replace(text, "tensor_parallel = 2", "tensor_parallel = 1", 1)
		}
		p := pointOf(t, text)
		p.Seed = rapid.Uint64Range(1, 1000).Draw(r, "seed")
		slo, err := limitsOf(&p)
		if err != nil {
			r.Fatal(err)
		}
		model, err := p.Shard()
		if err != nil {
			r.Fatal(err)
		}
		lengths, err := new(traffic).lengths(&p, model.Tokenizer)
		if err != nil {
			r.Fatal(err)
		}
		f, ok, err := newFloor(&p)
		if err != nil || !ok {
			r.Fatal(ok, err)
		}
		var seen ends
		sum, err := simulate(context.Background(), p, run.Sink{Watch: &seen})
		if err != nil {
			r.Fatal(err)
		}
		for i := range seen.of {
			e := &seen.of[i]
			floor := f.seconds(lengths.of[e.ID-1])
			if has := (e.FirstToken - e.Arrival).Seconds(); e.Rejected == "" && has < floor*(1-1e-6) {
				r.Fatalf("%d tokens: first token after %g s, floor %g s\n%s", e.Prompt, has, floor, text)
			}
		}
		if why := f.late(lengths, slo); why != "" {
			late++
			if missed := p.SLO.Missed(&sum, slo.bounds); len(missed) == 0 {
				r.Fatalf("floors miss %s, the run nothing\n%s", why, text)
			}
		}
	})
	if late == 0 && !testing.Short() { // which draws few
		t.Error("no run is late by its floors")
	}
}

// Prompts that may need less than all of their FLOPs have no floor.
func TestFloorIsOfWholePrompts(t *testing.T) {
	for _, c := range []struct {
		model, workload, system string
		ok                      bool
	}{
		{"llama3.1-8b", "", "preset = \"vllm\"", true},
		{"llama3.1-8b", "", "preset = \"sparseserve\"", true},
		{"llama3.1-8b", "", "preset = \"sparseserve-minference\"", false},
		{"llama3.1-8b", "", "preset = \"vllm-0.15\"\n[prefix_cache]\nmode = \"vllm\"", true},
		{"llama3.1-8b", "prefix_hit = 0.5", "preset = \"vllm\"", false},
		{"mixtral-8x7b", "", "preset = \"vllm-0.15\"\ntensor_parallel = 2", false},
	} {
		p := pointOf(t, fmt.Sprintf("model = %q\ngpu = \"h100-80gb\"\n[workload]\n"+
			"rate = 1\nrequests = 4\n%s\n[system]\n%s\n[slo]\nttft_s = 1\n", c.model, c.workload, c.system))
		if _, ok, err := newFloor(&p); err != nil || ok != c.ok {
			t.Errorf("%+v: floor %v, %v", c, ok, err)
		}
	}
}

// Candidates that miss by their floors are not run.
func TestFloorsSaveRuns(t *testing.T) {
	for ttft, most := range map[string]int64{"0.01": 8, "30": 100} {
		simulate, made := tallied(queues)
		a, _ := purchase(t, t.TempDir(), fmt.Sprintf(short, "rate = 5", "ttft_s = "+ttft), 2, simulate)
		if bought := a.Choice != nil; bought != (ttft == "30") || made.Load() > most {
			t.Errorf("ttft_s = %s: choice %+v after %d runs", ttft, a.Choice, made.Load())
		}
	}
}

// One candidate of each machine and system comes before another of any, and stock ones, whose runs
// cost less, before the others; of each those with the highest limits.
func TestPricesAreKnownSoon(t *testing.T) {
	text := fmt.Sprintf(short, "rate = 5", "ttft_s = 1") + "grid.system.max_requests = [16, 64]\n" +
		"grid.system.preset = [\"sparseserve\", \"vllm-0.15\"]\n"
	text = strings.Replace(text, "tensor_parallel = [1, 2]", "tensor_parallel = [1]", 1)
	s, err := config.LoadPlan(testkit.Write(t, "plan.toml", text), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	offers, err := OffersOf(s)
	if err != nil {
		t.Fatal(err)
	}
	order := inTurn(offers.options)
	if len(order) != 16 {
		t.Fatalf("%d candidates", len(order))
	}
	for i, o := range order {
		if stock(&o.Point.System) != (i%8 < 4) {
			t.Errorf("candidate %d is %s", i, o.Label)
		}
		if want := 64 - 48*(i/8); o.Point.System.MaxRequests != want {
			t.Errorf("candidate %d has %d requests a batch, want %d", i, o.Point.System.MaxRequests, want)
		}
		if i%4 > 0 && o.perByte < order[i-1].perByte {
			t.Errorf("candidate %d, %s, costs less for its bandwidth than the one before", i, o.Label)
		}
	}
}
