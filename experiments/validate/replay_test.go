package validate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/traces"
	"github.com/sparseserve/sparseserve/traces/records"
)

func llamaServer(t *testing.T, sets ...string) config.Point {
	t.Helper()
	c, err := config.LoadServer("", append([]string{"model=llama2-7b", "gpu=h100-80gb"}, sets...),
		false, "")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestLoadServer(t *testing.T) {
	c := llamaServer(t)
	if s := c.System; s.Name != config.ServerPreset || s.Scheduler != "vllm-v1" ||
		s.Prefill.OverLength != "reject" || s.Prefill.MaxPromptTokens != 0 {
		t.Errorf("system %+v", s)
	}
	path := testkit.Write(t, "c.toml", "model = \"lwm-7b\"\ngpu = \"a100-40gb\"\n[workload]\ntrace "+
		"= \"nowhere.csv\"\nrate = [1, 2]\noutput_scale = 3.0\n"+
		"[[systems]]\nname = \"mine\"\nprefill.max_prompt_tokens = 100\nmax_requests = "+
		"7\n[output]\nsteps = "+
		"true\n")
	c, err := config.LoadServer(path, []string{"system.max_tokens=512"}, false, "")
	if err != nil {
		t.Fatal(err)
	}
	if s := c.System; s.Name != "mine" || s.Scheduler != "vllm-v1-whole" || s.MaxRequests != 7 ||
		s.MaxTokens != 512 || s.Prefill.MaxPromptTokens != 0 || c.Output.Steps {
		t.Errorf("the file's own system is %+v", s)
	}
	r := c.Replayed("t.csv", 5)
	if w := r.Workload; w.Trace != "t.csv" || w.Arrivals != traces.ArrivalsTrace ||
		w.OutputScale != 1 || w.Speed != 1 || w.Requests != 5 {
		t.Errorf("workload %+v", w)
	}
	for _, base := range []string{"vllm", "sarathi"} {
		if got := llamaServer(t, "system.scheduler="+base).System.Scheduler; got != base {
			t.Errorf("--set system.scheduler=%s gives %s", base, got)
		}
	}
}

// What the default experiment serves is nothing that a record is compared with.
func TestLoadServerTakesNoRequests(t *testing.T) {
	c := llamaServer(t).Replayed("t.csv", 5)
	want := traces.DefaultSpec()
	want.Trace, want.Format, want.Arrivals, want.Rate, want.Requests = "t.csv", traces.FormatCSV,
		traces.ArrivalsTrace, 0, 5
	if fmt.Sprint(c.Workload) != fmt.Sprint(want) || want.OutputScale != 1 {
		t.Errorf("workload %+v\n   want %+v", c.Workload, want)
	}
	preset, _ := config.PresetNamed(config.Presets(), config.ServerPreset)
	spec := preset.Spec
	spec.Prefill.OverLength, spec.Prefill.MaxPromptTokens = "reject", 0
	spec.PrefixCache.Mode, spec.Sampling = "off", "top-p"
	spec.MaxTokens, spec.Prefill.ChunkTokens, spec.MaxRequests = 8192, 8192, 1024 // of an H100
	if c.System != spec {
		t.Errorf("system %+v\n  want %+v", c.System, spec)
	}
}

func TestLoadServerErrors(t *testing.T) {
	testkit.Write(t, "two.toml", "model = \"lwm-7b\"\ngpu = \"a100-40gb\"\n[[systems]]\nname = "+
		"\"a\"\n[[systems]]\nname = \"b\"\n")
	write2 := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write2("list.toml", "model = \"lwm-7b\"\ngpu = \"a100-40gb\"\nseed = [1, 2]\n[system]\npreset = "+
		"\"vllm\"\n")
	write2("typo.toml", "model = \"lwm-7b\"\n[system]\nmax_request = 3\n")
	served := []string{"model=llama2-7b", "gpu=h100-80gb"}
	for name, c := range map[string]struct {
		path string
		sets []string
		want string
	}{
		"nothing": {"", nil, "model: not set; name what the record was measured on, as in --set " +
			"model=llama2-7b (sparseserve list models)"},
		"no card": {"", served[:1], "gpu: not set; name what the record was measured on, as in --set " +
			"gpu=h100-80gb (sparseserve list gpus)"},
		"workload": {"", append(served[:2:2], "workload.rate=2"), "--set workload.rate=2: the " +
			"record says which requests arrive and when; leave this out"},
		"two systems": {"two.toml", nil, "two.toml:3: systems = [a, b]: a record describes one server; " +
			"choose one system with --set system.preset=NAME"},
		"experiment": {"default", nil, "default:25: system.preset = [vllm, vllm-s, vllm-so, " +
			"sparseserve]: a record describes one server"},
		"by a flag": {"", append(served[:2:2], "system.preset=[vllm,vllm-s]"),
			"--set system.preset=[vllm,vllm-s]: a record describes one server"},
		"two seeds": {"list.toml", nil, "list.toml:3: seed = [1, 2]: a record is compared with one " +
			"run; choose one seed"},
		"typo":         {"typo.toml", nil, "typo.toml:3: system.max_request"},
		"no such file": {"nowhere.toml", nil, "nowhere.toml: no such file"},
		"no room": {"", append(served[:2:2], "system.kv_gib=500"), "--set system.kv_gib=500: " +
			"h100-80gb leaves "},
	} {
		_, err := config.LoadServer(c.path, c.sets, false, "")
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// fixed is a server that answers each request in a time of its own, so that
// figures can be computed by hand; it refuses prompts of more than 1,000 tokens.
func fixed(ttft, e2e float64) run.Runner {
	return func(ctx context.Context, p config.Point, sink run.Sink) (metrics.Summary, error) {
		stream, err := traces.Open(p.Workload, p.Seed)
		if err != nil {
			return metrics.Summary{}, err
		}
		f := run.NewOutputs(sink, &sim.Spec{}, false, false)
		for id := 1; ; id++ {
			a, ok, err := stream.Next()
			if !ok || err != nil {
				return metrics.Summary{Completed: id - 1}, err
			}
			r := metrics.Request{ID: id, Prompt: a.Prompt, Output: a.Output, Arrival: a.At,
				Scheduled:  a.At,
				FirstToken: a.At + des.FromSeconds(ttft), LastToken: a.At + des.FromSeconds(e2e)}
			if a.Prompt > 1000 {
				r = metrics.Request{ID: r.ID, Prompt: a.Prompt, Output: a.Output, Arrival: a.At,
					Rejected: "too long"}
			}
			if err := f.Request(&r); err != nil {
				return metrics.Summary{}, err
			}
		}
	}
}

func replayOf(t *testing.T, simulate run.Runner, requests ...records.Request) *Replay {
	t.Helper()
	return &Replay{Name: "run", Dir: filepath.Join(t.TempDir(), "out"),
		Record: &records.Record{Requests: requests}, Config: llamaServer(t), Run: simulate}
}

func TestReplayByHand(t *testing.T) {
	r := replayOf(t, fixed(0.2, 1.2),
		records.Request{At: 0, Prompt: 10, Output: 5, TTFT: 5, E2E: 9}, // skipped
		records.Request{At: 1 * des.Second, Prompt: 10, Output: 11, TTFT: 0.1, E2E: 1.1},
		records.Request{At: 2 * des.Second, Prompt: 2000, Output: 11, TTFT: 7, E2E: 8}, // rejected
		records.Request{At: 3 * des.Second, Prompt: 10, Output: 1, TTFT: 0.3, E2E: 0.3},
		records.Request{At: 4 * des.Second, Prompt: 10, Output: 6, TTFT: 0.5, E2E: 3})
	r.Skip = 0.5
	out, err := r.Do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if out.Skipped != 1 || out.Rejected != 1 || len(out.Requests) != 3 || len(out.Stages) != 1 {
		t.Errorf("%d skipped, %d rejected, %d compared, stages %+v", out.Skipped, out.Rejected,
			len(out.Requests), out.Stages)
	}
	want := map[string][2]float64{
		"ttft_mean_s": {0.3, 0.2}, "ttft_p50_s": {0.3, 0.2}, "ttft_p90_s": {0.46, 0.2},
		"ttft_p99_s":  {0.496, 0.2},
		"tpot_mean_s": {0.3, 0.15}, "tpot_p50_s": {0.3, 0.15}, "tpot_p90_s": {0.46, 0.19},
		"tpot_p99_s": {0.496, 0.199},
		"e2e_mean_s": {4.4 / 3, 1.2}, "e2e_p50_s": {1.1, 1.2}, "e2e_p90_s": {2.62, 1.2},
		"e2e_p99_s":        {2.962, 1.2},
		"throughput_tok_s": {18.0 / 6, 18.0 / 4.2},
	}
	if len(out.Comparisons) != len(want) {
		t.Errorf("%d figures, want %d", len(out.Comparisons), len(want))
	}
	for _, c := range out.Comparisons {
		w, ok := want[c.Metric]
		if !ok || math.Abs(c.Measured-w[0]) > 1e-9 || math.Abs(c.Simulated-w[1]) > 1e-9 ||
			math.Abs(*c.Error-(w[1]/w[0]-1)) > 1e-8 {
			t.Errorf("%s: %v and %v, want %v", c.Metric, c.Measured, c.Simulated, w)
		}
		if c.Thin() != strings.HasSuffix(c.Metric, "_p99_s") {
			t.Errorf("%s of %d requests: thin %v", c.Metric, c.Requests, c.Thin())
		}
	}
	text, err := os.ReadFile(filepath.Join(r.Dir, "requests.csv"))
	if want := "4,\"0.67 req/s, 1.0-4.0 " +
		"s\",3.000000000,10,1,0.300000000,0.200000000,,,0.300000000,1.200000000\n"; err != nil ||
		!strings.Contains(string(text), want) {
		t.Errorf("%v, requests.csv lacks %q:\n%s", err, want, text)
	}
}

// A simulation held against itself has no error: what is replayed is what was
// recorded, to the nanosecond, and both sides are measured alike.
func TestReplayOfItself(t *testing.T) {
	m, err := records.Read(measuredRun)
	if err != nil {
		t.Fatal(err)
	}
	simulate := run.NewSimulator().Run
	r := replayOf(t, simulate, m.Requests...)
	first, err := r.Do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(first.Stages) != 2 || len(first.Comparisons) != 3*13 ||
		len(first.Requests) != len(m.Requests) {
		t.Fatalf("%d stages, %d figures of %d requests", len(first.Stages), len(first.Comparisons),
			len(first.Requests))
	}
	var again []records.Request
	for _, q := range first.Requests {
		again = append(again, q.Simulated)
	}
	second, err := replayOf(t, simulate, again...).Do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range second.Comparisons {
		if c.Error == nil || math.Abs(*c.Error) > 1e-9 {
			t.Errorf("%s of %s: %v measured, %v simulated", c.Metric, c.Stage, c.Measured, c.Simulated)
		}
	}
	// The result folder's configuration makes the same run.
	cfg, err := config.Load(filepath.Join(r.Dir, "config.toml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := simulate(t.Context(), cfg[0],
		run.Sink{Requests: new(bytes.Buffer), Finished: func() {}})
	if err != nil || sum.TTFT != first.Summary.TTFT || sum.Steps != first.Summary.Steps {
		t.Errorf("%v; from config.toml %+v, compared was %+v", err, sum.TTFT, first.Summary.TTFT)
	}
}

// The same record and configuration give the same bytes.
func TestReplayIsDeterministic(t *testing.T) {
	m, err := records.Read(measuredRun)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	kept := map[string][]byte{}
	for range 2 {
		r := replayOf(t, run.NewSimulator().Run, m.Requests[:100]...)
		r.Dir = "out"
		out, err := r.Do(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range append(out.Files, "out/trace.csv") {
			text, err := os.ReadFile(path)
			if before, ok := kept[path]; err != nil || ok && !bytes.Equal(before, text) {
				t.Errorf("%s differs (%v)", path, err)
			}
			kept[path] = text
		}
	}
	var all []RecordComparison
	if err := json.Unmarshal(kept[filepath.Join("out", "compare.json")], &all); err != nil ||
		len(all) != 13 {
		t.Errorf("compare.json has %d figures, %v", len(all), err)
	}
	if rows := strings.Count(string(kept[filepath.Join("out", "compare.csv")]), "\n"); rows != 1+13 {
		t.Errorf("compare.csv has %d lines", rows)
	}
}
