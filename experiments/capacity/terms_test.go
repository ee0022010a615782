package capacity

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

const twoGPUs = `model = "llama3.1-8b"
gpu = "h100-80gb"
[workload]
trace = "synthetic"
prompt_lengths = "fixed(100)"
output_lengths = "fixed(100)"
requests = 40
rate = 2
[system]
preset = "vllm-0.15"
tensor_parallel = 2
[slo]
ttft_s = 1
[plan]
headroom = 0
`

// Three replicas of two GPUs cost six times a GPU's price, at the lowest and the highest price too.
func TestPricesCountTheGPUsOfEachReplica(t *testing.T) {
	f := offers(t, twoGPUs)
	o := f.options[0]
	if o.gpus != 2 || math.Abs(o.replica-2*o.price.USDPerHour) > 1e-9 {
		t.Errorf("a replica of %d GPUs at $%g costs $%g", o.gpus, o.price.USDPerHour, o.replica)
	}
	o.found = &attempt{replicas: 3, slo: o.slo}
	if got := o.usd(); math.Abs(got-6*o.price.USDPerHour) > 1e-9 {
		t.Errorf("three replicas cost $%g, a GPU $%g", got, o.price.USDPerHour)
	}
	a := &Purchase{}
	if err := a.describe(o, f.prices); err != nil {
		t.Fatal(err)
	}
	for i, table := range []string{"low", "high"} {
		p, err := f.prices.Of(table, "h100-80gb")
		if err != nil {
			t.Fatal(err)
		}
		if got := a.AtPrices[i].USDPerHour; math.Abs(got-6*p.USDPerHour) > 1e-9 {
			t.Errorf("at the %s price: $%g, want 6 x $%g", table, got, p.USDPerHour)
		}
	}
}

// 2 requests/s arrive, of which three in four are served, each with 100 tokens: 150 tokens/s, while
// the run with its end served 1.2 requests/s. At $15.40 an hour a million tokens cost $28.52.
func TestTokensOfRejectedRequestsDoNotCount(t *testing.T) {
	r := &attempt{replicas: 1, trials: []Trial{{}}, sums: []metrics.Summary{{Rate: 2,
		RequestThroughput: 1.2, ServedShare: 0.75, ThroughputTokS: 120, Requests: 40, Rejected: 10}}}
	output := func(s *metrics.Summary) float64 { return s.ThroughputTokS }
	if got := tokensPerSecond(r, 1, output); math.Abs(got-150) > 1e-9 {
		t.Errorf("%g tokens/s, want 150", got)
	}
	o := &option{Candidate: Candidate{Point: offers(t, twoGPUs).options[0].Point}, outcome: Meets,
		gpus: 2, replica: 15.4, found: r, expected: r}
	if c := o.choice(); math.Abs(c.USDPerMOutput-15.4/3600/150*1e6) > 1e-9 || c.GPUs != 2 ||
		c.USDPerHour != 15.4 {
		t.Errorf("%d GPUs, $%g/h, $%g a million tokens, want 2, 15.4 and 28.5", c.GPUs, c.USDPerHour,
			c.USDPerMOutput)
	}
}

// At 2 requests/s that stay for 40 s, 80 are in flight. A run in which they turn over ten times has
// 800 requests, though the configuration has 40.
func TestRunsAreMadeLongEnough(t *testing.T) {
	var asked []int
	slow := func(_ context.Context, p config.Point, _ run.Sink) (metrics.Summary, error) {
		asked = append(asked, p.Workload.Requests)
		return metrics.Summary{Requests: p.Workload.Requests, Completed: p.Workload.Requests,
			ServedShare: 1, E2E: metrics.Stats{Mean: 40}}, nil
	}
	a, _ := purchase(t, t.TempDir(), twoGPUs, 1, slow)
	if a.Choice == nil || a.Requests != 800 || slices.Max(asked) < 800 {
		t.Errorf("the choice's run has %d requests; runs had %v, want 800", a.Requests, asked)
	}
}

// A tenth more of a resource is a tenth more of all that it stands for.
func TestATenthMore(t *testing.T) {
	p := offers(t, twoGPUs).options[0].Point
	p.System.KVGiB, p.System.MaxRequests, p.System.MaxTokens, p.System.Prefill.ChunkTokens = 10, 101,
		2048, 512
	machine, err := p.Machine()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range resources {
		grown := p
		ok, err := r.grow(&grown)
		if err != nil {
			t.Fatal(err)
		}
		kv, requests, tokens, chunk := 10.0, 101, 2048, 512
		card := map[string]float64{}
		switch r.name {
		case "HBM bandwidth":
			card["hbm_bandwidth"] = machine.Changeable("hbm_bandwidth")
		case "arithmetic":
			card["peak_fp16"] = machine.Changeable("peak_fp16")
		case "HBM":
			kv, card["hbm_size"] = 11, machine.Changeable("hbm_size")
		case "CPU":
			card["cpu_speed"] = machine.Changeable("cpu_speed")
		case "requests a batch":
			requests = 112
		case "tokens a step":
			tokens, chunk = 2253, 564
		default: // of what is offloaded: this system has all KV in HBM
			if ok {
				t.Errorf("%s grows", r.name)
			}
			continue
		}
		s := &grown.System
		if !ok || math.Abs(s.KVGiB-kv) > 1e-9 || s.MaxRequests != requests || s.MaxTokens != tokens ||
			s.Prefill.ChunkTokens != chunk || len(grown.Card) != len(card) {
			t.Errorf("%s: %g GiB, %d requests, %d and %d tokens, card %v", r.name, s.KVGiB, s.MaxRequests,
				s.MaxTokens, s.Prefill.ChunkTokens, grown.Card)
		}
		for key, has := range card {
			if got := grown.Card[key]; math.Abs(got-1.1*has) > 1e-9*has {
				t.Errorf("%s: %s = %g of %g", r.name, key, got, has)
			}
		}
	}
}
