package capacity

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// exhaustive simulates every candidate with every number of replicas, whole, and returns the
// cheapest that holds the service level; of those at one price, that of fewer GPUs, then the one
// that uses the least of the limit that it is nearest to.
func exhaustive(
	t testing.TB,
	s *config.Sweep,
	simulate run.Runner,
) (label string, replicas int, usd float64) {
	t.Helper()
	prices, err := LoadPrices(s.Plan.PricesFile)
	if err != nil {
		t.Fatal(err)
	}
	candidates, err := UnderLoad(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	usd, gpus, used := math.Inf(1), 0, 0.0
	for _, c := range candidates {
		price, err := prices.Of(s.Plan.Prices, c.Point.GPU)
		if err != nil {
			t.Fatal(err)
		}
		load, _ := loadOf(&c.Point.Workload)
		load *= 1 + s.Plan.Headroom
		slo, err := limitsOf(&c.Point)
		if err != nil {
			t.Fatal(err)
		}
		if slo, err = slo.lessError(&c.Point); err != nil {
			t.Fatal(err)
		}
		for n := 1 + s.Plan.Spare; n <= s.Plan.MaxReplicas; n++ {
			holds, near := servedFor(t, c, n-s.Plan.Spare, load, slo, simulate)
			if !holds {
				continue
			}
			g := n * c.Point.System.TensorParallel
			cost := float64(g) * price.USDPerHour
			if cost < usd-1e-9 || cost < usd+1e-9 && (g < gpus || g == gpus && near < used) {
				label, replicas, usd, gpus, used = c.Label(), n, cost, g, near
			}
		}
	}
	return label, replicas, usd
}

// servedFor is served of a run that is long enough.
func servedFor(
	t testing.TB,
	c Candidate,
	n int,
	load float64,
	slo limits,
	simulate run.Runner,
) (holds bool, near float64) {
	t.Helper()
	for requests := 0; ; {
		p := withLoad(c.Point, n, load, requests)
		p.Seed = c.Seeds[0]
		slo.judge(&p)
		holds, near, inFlight := served(t, &p, slo, simulate)
		if p.Workload.Concurrency > 0 {
			inFlight = float64(p.Workload.Concurrency)
		}
		if requests = roundUp(10 * inFlight); !holds || requests <= p.Workload.Requests {
			return holds, near
		}
	}
}

// served reports whether a whole run meets the service level, its distance from the nearest limit,
// and the requests in flight.
func served(
	t testing.TB,
	p *config.Point,
	slo limits,
	simulate run.Runner,
) (holds bool, near, inFlight float64) {
	t.Helper()
	sum, err := simulate(context.Background(), *p, run.Sink{})
	if err != nil {
		t.Fatal(err)
	}
	grows := warn.Has(sum.Warnings, warn.UnstableQueue)
	if p.SLO.Rule == config.SLORequests && sum.GoodShare != nil {
		near = (1 - *sum.GoodShare) / p.SLO.MissShare
	} else {
		for i := range slo.bounds {
			near = max(near, slo.bounds[i].Value(&sum)/slo.bounds[i].Limit)
		}
	}
	return len(p.SLO.Missed(&sum, slo.bounds)) == 0 && !grows, near, p.Workload.Rate * sum.E2E.Mean
}

// short is a workload of which a run takes milliseconds.
const short = `model = "llama3.1-8b"
[workload]
prompt_lengths = "lognormal(700, 1, 6000)"
output_lengths = "uniform(20, 120)"
%s
requests = 40
[fleet]
router = "least-tokens"
[system]
preset = "vllm-0.15"
max_requests = 1024
max_tokens = 8192
[slo]
%s
[plan]
max_replicas = 5
[[axis]]
grid.gpu = ["a100-40gb", "a100-80gb", "h100-80gb", "h200"]
grid.system.tensor_parallel = [1, 2]
`

// TestPurchaseIsTheCheapestOfAll compares the answer with every candidate and number of replicas
// simulated whole.
func TestPurchaseIsTheCheapestOfAll(t *testing.T) {
	t.Parallel()
	simulate := run.NewSimulator().Run
	const sparse = "\n[[axis]]\ngrid.system.preset = [\"vllm-s\", \"sparseserve\"]\n"
	for i, c := range []struct{ load, slo, axis string }{
		{"rate = 8", "ttft_s = 0.5\ntbt_s = 0.15", ""},
		{"rate = 30", "ttft_s = 1\nttft_stat = \"p95\"\ntbt_s = 0.1\ntbt_stat = \"p90\"\n" +
			"delay_s = 0.05\ndelay_stat = \"p50\"", ""},
		{"concurrency = 40", "e2e_s = 2\ne2e_stat = \"mean\"", ""},
		{"rate = 20", "rule = \"requests\"\nmiss_share = 0.1\nttft_s = 0.4\ntbt_s = 0.2", ""},
		{"rate = 8", "ttft_s = 0.25", sparse}, // prompts that an A100 has no time for
	} {
		if testing.Short() && i > 0 {
			break
		}
		text := fmt.Sprintf(short, c.load, c.slo) + c.axis
		if c.axis != "" { // neither shares layers between GPUs
			text = strings.Replace(text, "tensor_parallel = [1, 2]", "tensor_parallel = [1]", 1)
		}
		a, s := purchase(t, t.TempDir(), text, 2, simulate)
		label, replicas, usd := exhaustive(t, s, simulate)
		if a.Choice == nil || a.Choice.Name != label || a.Choice.Replicas != replicas ||
			math.Abs(a.Choice.USDPerHour-usd) > 1e-9 {
			t.Errorf("%s, %s: chose %+v, the cheapest of all is %d x %s at $%g", c.load, c.slo,
				a.Choice, replicas, label, usd)
		}
	}
}

// queues is a runner whose P99 TTFT is 1 s where each GPU has the load that its bandwidth can take.
func queues(_ context.Context, p config.Point, _ run.Sink) (metrics.Summary, error) {
	card, err := hw.LoadCard(p.GPU)
	if err != nil {
		return metrics.Summary{}, err
	}
	bandwidth := card.GPU.HBMBandwidth.SI()
	if v, ok := p.Card["hbm_bandwidth"]; ok {
		bandwidth = 1e9 * v
	}
	gpus := float64(p.Fleet.Replicas) * math.Pow(float64(p.System.TensorParallel), 0.9)
	capacity := gpus * bandwidth / 1e12 * (1 + float64(p.System.MaxRequests)/1e4)
	n := p.Workload.Requests
	return metrics.Summary{
		Requests:          n,
		Completed:         n,
		Rate:              p.Workload.Rate,
		ServedShare:       1,
		RequestThroughput: p.Workload.Rate / 2,
		ThroughputTokS:    50 * p.Workload.Rate,
		TTFT:              metrics.Stats{P99: p.Workload.Rate / capacity},
		Warnings:          []warn.Warning{},
	}, nil
}

// TestPurchaseOfAnyCosts draws loads, limits and prices.
func TestPurchaseOfAnyCosts(t *testing.T) {
	dir, n := t.TempDir(), 0
	rapid.Check(t, func(r *rapid.T) {
		if n++; n > 8 || testing.Short() && n > 2 { // each has hundreds of runs
			return
		}
		dir := filepath.Join(dir, fmt.Sprint(n))
		var prices strings.Builder
		for _, gpu := range []string{"a100-40gb", "a100-80gb", "h100-80gb", "h200"} {
			fmt.Fprintf(
				&prices,
				"[[price]]\nprovider = \"us\"\ngpu = %q\nusd_per_hour = %g\ndate = 2026-11-01\nsource = "+
					"\"ours\"\n",
				gpu,
				rapid.SampledFrom([]float64{0.5, 1, 2, 3.1, 4}).Draw(r, gpu),
			)
		}
		file := filepath.Join(dir, "prices.toml")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			r.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(prices.String()), 0o644); err != nil {
			r.Fatal(err)
		}
		load := rapid.Float64Range(0.1, 60).Draw(r, "rate")
		text := fmt.Sprintf(short, fmt.Sprintf("rate = %g", load), "ttft_s = 1")
		text = strings.Replace(text, "[plan]",
			fmt.Sprintf("[plan]\nprices = \"us\"\nprices_file = %q", file), 1)
		a, s := purchase(t, dir, text, 2, queues)
		label, replicas, usd := exhaustive(t, s, queues)
		switch {
		case a.Choice == nil && replicas > 0, a.Choice != nil && replicas == 0:
			r.Fatalf("chose %+v, the cheapest of all is %d x %s", a.Choice, replicas, label)
		case a.Choice == nil:
			if a.Nearest == nil || a.Nearest.Limits[0].Of <= 1 {
				r.Fatalf("nearest miss %+v", a.Nearest)
			}
		case a.Choice.Name != label || a.Choice.Replicas != replicas ||
			math.Abs(a.Choice.USDPerHour-usd) > 1e-9:
			r.Fatalf("chose %d x %s at $%g, the cheapest of all is %d x %s at $%g",
				a.Choice.Replicas, a.Choice.Name, a.Choice.USDPerHour, replicas, label, usd)
		default:
			if want := usd / 3600 / (100 * load) * 1e6; math.Abs(a.Choice.USDPerMOutput-want) > 1e-9*want {
				r.Fatalf("$%g a million tokens, want $%g", a.Choice.USDPerMOutput, want)
			}
			if *a.Choice.Headroom < 0 || len(a.Choice.LimitedBy) != 1 || a.Choice.LimitedBy[0] != "ttft" {
				r.Fatalf("headroom %g, limited by %q", *a.Choice.Headroom, a.Choice.LimitedBy)
			}
			if a.Choice.Short[0] != "HBM bandwidth" || math.Abs(a.Choice.Effects[0].Less-(1-1/1.1)) > 1e-6 {
				r.Fatalf("short of %q, %+v", a.Choice.Short, a.Choice.Effects)
			}
		}
	})
}

// One candidate of each machine and system comes before another of any, and stock ones, whose runs
// cost less, before the others; of each those with the highest limits.
func TestPricesAreKnownSoon(t *testing.T) {
	text := fmt.Sprintf(short, "rate = 5", "ttft_s = 1") + "grid.system.max_requests = [16, 64]\n" +
		"grid.system.preset = [\"sparseserve\", \"vllm-0.15\"]\n"
	text = strings.Replace(text, "tensor_parallel = [1, 2]", "tensor_parallel = [1]", 1)
	order := inTurn(offers(t, text).options)
	if len(order) != 16 {
		t.Fatalf("%d candidates", len(order))
	}
	for i, o := range order {
		if stock(&o.Point.System) != (i%8 < 4) {
			t.Errorf("candidate %d is %s", i, o.Label())
		}
		if want := 64 - 48*(i/8); o.Point.System.MaxRequests != want {
			t.Errorf("candidate %d has %d requests a batch, want %d", i, o.Point.System.MaxRequests, want)
		}
		if i%4 > 0 && o.perByte < order[i-1].perByte {
			t.Errorf("candidate %d, %s, costs less for its bandwidth than the one before", i, o.Label())
		}
	}
}
