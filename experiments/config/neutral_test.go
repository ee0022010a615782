package config

import (
	"bytes"
	"os"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/traces"
)

// ownTrace is three requests, one beyond every limit of the default experiment.
const ownTrace = "arrived_s,prompt_tokens,output_tokens,set\n0,100000,50,a\n1.5,2000,10,\"b, " +
	"c\"\n3,30,1,a\n"

const untimedTrace = "prompt_tokens,output_tokens\n100000,50\n2000,10\n"

// What a user brings is served as it is, unless the user says otherwise.
func TestNeutralValues(t *testing.T) {
	const all = 21 // sets of LongBench
	type values struct {
		scale    float64
		prompts  int
		requests int
		datasets int
		arrivals string
		rates    []float64
	}
	lwm := values{1.85, 32768, 300, 10, "poisson", []float64{0.05, 0.1, 0.15, 0.2, 0.25}}
	llama := values{8, 131072, 300, 10, "poisson", []float64{0.1, 0.15, 0.2, 0.25, 0.3}}
	model := values{1, 0, 300, 10, "poisson", lwm.rates}
	own := values{1, 0, 0, all, "trace", []float64{0}}
	but := func(v values, change func(*values)) values { change(&v); return v }
	for _, c := range []struct {
		name, config string
		sets         []string
		want         values
	}{
		{"the default", "", nil, lwm},
		{"the default's model by name", "", []string{"model=lwm-7b"}, lwm},
		{"a built-in experiment", "llama3-8b", nil, llama},
		{"another model", "", []string{"model=llama3-8b"}, model},
		{"another model in a file", "model = \"qwen2-7b\"\n", nil, model},
		{"a model over a built-in experiment", "llama3-8b", []string{"model=qwen2-7b"},
			but(model, func(v *values) { v.rates = llama.rates })},
		{"another model, scale set", "model = \"qwen2-7b\"\n[workload]\noutput_scale = 1.85\n", nil,
			but(model, func(v *values) { v.scale = 1.85 })},
		{"another model, limit set", "model = \"qwen2-7b\"\n",
			[]string{"prefill.max_prompt_tokens=32768"},
			but(model, func(v *values) { v.prompts = 32768 })},
		{"a trace", "", []string{"workload.trace=own.csv"}, own},
		{"a trace in a file", "[workload]\ntrace = \"own.csv\"\n", nil, own},
		{"a trace and a model", "model = \"qwen2-7b\"\n[workload]\ntrace = \"own.csv\"\n", nil, own},
		{"a trace over a built-in experiment", "llama3-8b", []string{"workload.trace=own.csv"}, own},
		{"a trace at a rate", "", []string{"workload.trace=own.csv", "workload.rate=2"},
			but(own, func(v *values) { v.arrivals, v.rates = "poisson", []float64{2} })},
		{"a trace at a rate of an arrival process", "",
			[]string{"workload.trace=own.csv", "workload.rate=2", "workload.arrivals=fixed"},
			but(own, func(v *values) { v.arrivals, v.rates = "fixed", []float64{2} })},
		{"a trace without times", "", []string{"workload.trace=untimed.csv", "workload.rate=2"},
			but(own, func(v *values) { v.arrivals, v.rates = "poisson", []float64{2} })},
		{"a trace and all that is neutral set", "[workload]\ntrace = \"own.csv\"\noutput_scale = " +
			"2\nrequests = 2\n[longbench]\ndatasets = \"lcc\"\n[prefill]\nmax_prompt_tokens = 9000\n", nil,
			values{2, 9000, 2, 1, "trace", []float64{0}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			testkit.Write(t, "own.csv", ownTrace)
			for name, text := range map[string]string{"untimed.csv": untimedTrace, "c.toml": c.config} {
				if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			path := "c.toml"
			if c.config == "llama3-8b" {
				path = c.config
			}
			cfg := mustLoad(t, path, c.sets...)
			w := cfg[0].Workload
			for _, p := range cfg {
				s := &p.System
				got := values{w.OutputScale, s.Prefill.MaxPromptTokens, w.Requests, len(w.Datasets),
					w.Arrivals, ratesOf(cfg)}
				if got.scale != c.want.scale || got.prompts != c.want.prompts ||
					got.requests != c.want.requests ||
					got.datasets != c.want.datasets || got.arrivals != c.want.arrivals ||
					!slices.Equal(got.rates, c.want.rates) {
					t.Fatalf("%s: %+v, want %+v", s.Name, got, c.want)
				}
			}
			sweep := mustSweep(t, path, c.sets...)
			if v := sweep.Variants[0]; v[0].Workload.OutputScale != w.OutputScale ||
				!slices.Equal(ratesOf(v), ratesOf(cfg)) {
				t.Errorf("as a sweep: %+v", v[0].Workload)
			}
			// What was resolved is what is kept.
			text, err := TOML(cfg)
			if err != nil {
				t.Fatal(err)
			}
			again, err := TOML(mustLoad(t, testkit.Rewrite(t, "kept.toml", string(text))))
			if err != nil || !bytes.Equal(text, again) {
				t.Errorf("loaded again it is\n%s", again)
			}
		})
	}
}

// Models that are compared have outputs and prompts of the same trace.
func TestModelsAreComparedAlike(t *testing.T) {
	for _, c := range []struct {
		text  string
		scale float64
		limit int
	}{
		{"[[axis]]\ngrid.model = [\"lwm-7b\", \"llama3-8b\"]\n", 1, 0},
		{"[workload]\noutput_scale = 2\n[[axis]]\ngrid.model = [\"lwm-7b\", \"llama3-8b\"]\n", 2, 0},
		{"[[axis]]\ngrid.gpu = [\"a100-40gb\", \"h200\"]\n", 1.85, 32768},
	} {
		for _, v := range mustSweep(t, testkit.Write(t, "s.toml", c.text)).Variants {
			if w, s := v[0].Workload, v[0].System; w.OutputScale != c.scale ||
				s.Prefill.MaxPromptTokens != c.limit {
				t.Errorf("%s on %s: outputs times %g, prompts up to %d, want %g and %d", v[0].Model,
					v[0].GPU, w.OutputScale, s.Prefill.MaxPromptTokens, c.scale, c.limit)
			}
		}
	}
}

// No rate of the default experiment stands in for one that a trace needs in a plan of what to buy.
func TestTraceNeedsARate(t *testing.T) {
	for _, c := range []struct {
		sets []string
		want string
	}{
		{[]string{"workload.trace=untimed.csv"},
			"--set workload.trace=untimed.csv: workload.rate: not set, and untimed.csv has no arrival " +
				"times of its own; set it to requests/s, or workload.concurrency or workload.stages"},
		{[]string{"workload.trace=own.csv", "workload.arrivals=gamma"},
			`--set workload.trace=own.csv: workload.rate: not set, and workload.arrivals = "gamma" needs one, in requests/s; without both keys requests arrive at the times of own.csv`},
	} {
		testkit.Write(t, "own.csv", ownTrace)
		testkit.Rewrite(t, "untimed.csv", untimedTrace)
		_, err := LoadPlan(t.Context(), "default",
			append(c.sets, "plan.prices=mid", "system.preset=vllm"))
		if err == nil || err.Error() != c.want {
			t.Errorf("%q: %v, want %s", c.sets, err, c.want)
		}
	}
}

func TestCountOfAllRequests(t *testing.T) {
	path := testkit.Write(t, "own.csv", ownTrace)
	whole, some, mix := traces.DefaultSpec(), traces.DefaultSpec(), traces.DefaultSpec()
	whole.Trace, whole.Requests, some.Trace, some.Requests = path, 0, path, 2
	if n := traces.Count(whole, some, mix, whole); n != 3+2+300+3 {
		t.Errorf("%d requests", n)
	}
}

// Rates that nothing names are to be chosen with another model, card or trace; rates of the
// built-in experiment, a configuration, recorded times or a closed loop are kept.
func TestRatesToBeChosen(t *testing.T) {
	timed := testkit.Write(t, "timed.csv",
		"arrived_at,num_prefill_tokens,num_decode_tokens\n0,100,10\n1,100,10\n")
	lengths := []string{"workload.prompt_lengths=fixed(100)", "workload.output_lengths=fixed(10)"}
	for _, c := range []struct {
		sets            []string
		rates, requests bool
	}{
		{nil, false, false},
		{[]string{"system.preset=vllm-s", "workload.requests=9"}, false, false},
		{[]string{"model=llama3.1-8b", "gpu=h100-80gb"}, true, true},
		{[]string{"gpu=h100-80gb"}, true, true},
		{[]string{"model=llama3.1-8b", "workload.requests=9"}, true, false},
		{lengths, true, true},
		{append([]string{"workload.rate=2"}, lengths...), false, false},
		{append([]string{"workload.concurrency=2"}, lengths...), false, false},
		{append([]string{"workload.stages=[[10, 1.0]]"}, lengths...), false, false},
		{[]string{"workload.trace=" + timed}, false, false},
		{[]string{"workload.trace=" + timed, "workload.arrivals=poisson"}, true, true},
	} {
		got := mustLoad(t, "", c.sets...)[0]
		if got.NoRate != c.rates || got.NoRequests != c.requests {
			t.Errorf("%v: rates to be chosen %v, requests %v; want %v, %v", c.sets, got.NoRate,
				got.NoRequests, c.rates, c.requests)
		}
	}
}
