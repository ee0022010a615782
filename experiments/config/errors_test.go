package config

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/testkit"
)

// huge is a model that no card of today holds.
const huge = `name = "huge"
layers = 126
hidden = 16384
q_heads = 128
kv_heads = 8
head_dim = 128
ffn = 53248
vocab = 128256
max_context = 131072
tokenizer = "llama3"
weight_bytes_each = 2
kv_bytes_each = 2
source = "the shape of Llama-3.1-405B"
`

// TestBadInput compares every error message with a golden file: one line that names place, key and
// value.
func TestBadInput(t *testing.T) {
	cases := []struct {
		name, text string
		sets       []string
	}{
		{"unknown key", "model = \"lwm-7b\"\n[workload]\nrates = 0.1\n", nil},
		{"unknown top key", "modle = \"lwm-7b\"\n", nil},
		{"unknown table", "[sistem]\nwindow = 3\n", nil},
		{"no value", "", []string{"selection.budget_tokens="}},
		{"card's memory too small", "", []string{"card.link_h2d=30", "card.hbm_size=1"}},
		{"card's peak too low", "[card]\npeak_fp16 = 0.001\n", nil},
		{"unknown system key", "[system]\n\n# far down\nblock_token = 3\n", nil},
		{"unknown key in a system",
			"[[systems]]\nname = \"a\"\n[[systems]]\nname = \"b\"\nmax_request = 3\n",
			nil},
		{"unknown slo key", "[slo]\ndelay = 3\n", nil},
		{"wrong type", "[workload]\nrate = \"fast\"\n", nil},
		{"wrong type in a list", "[workload]\nrate = [0.1, true]\n", nil},
		{"wrong type of a system", "[offload]\nworking_set_steps = 1.5\n", nil},
		{"wrong type of a table", "workload = 3\n", nil},
		{"systems is a table", "[systems]\nname = \"a\"\n", nil},
		{"negative rate", "[workload]\nrate = -0.1\n", nil},
		{"rate that is no number", "[workload]\nrate = [0.1, nan]\n", nil},
		{"infinite rate", "[workload]\nrate = inf\n", nil},
		{"no rate", "[workload]\nrate = []\n", nil},
		{"rate twice", "[workload]\nrate = [0.1, 0.1]\n", nil},
		{"zero requests", "[workload]\nrequests = 0\n", nil},
		{"unknown arrivals", "[workload]\narrivals = \"poison\"\n", nil},
		{"missing trace", "[workload]\ntrace = \"nowhere.jsonl\"\n", nil},
		{"budget below one block", "[selection]\nbudget_tokens = 16\n", nil},
		{"negative window", "[offload]\nworking_set_steps = -1\n", nil},
		{"unknown eviction", "[system]\npreset = \"sparseserve\"\n[offload]\neviction = \"siev\"\n",
			nil},
		{"nothing to score", "[system]\npreset = \"sparseserve\"\n[selection]\non = false\n" +
			"[offload]\neviction = \"score\"\n", nil},
		{"budget eaten up", "[system]\npreset = \"vllm-s\"\n" +
			"[selection]\nsink_blocks = 60\nrecent_blocks = 5\n", nil},
		{"hot buffer below a selection",
			"[system]\npreset = \"hisparse\"\n[offload]\nhot_buffer = 1024\n", nil},
		{"hot buffer and layers", "[system]\npreset = \"hisparse\"\n[prefill]\nsplit = \"layer\"\n",
			nil},
		{"hot buffer in HBM", "[system]\npreset = \"hisparse\"\n[offload]\non = false\n", nil},
		{"hot buffer by memcpy", "[system]\npreset = \"hisparse\"\n[offload]\nload = \"memcpy\"\n",
			nil},
		{"no hot buffer", "[system]\npreset = \"vllm-so\"\n[offload]\nhot_release = \"short\"\n", nil},
		{"hot buffer of psa", "[system]\npreset = \"hisparse\"\n[selection]\npolicy = \"psa\"\n", nil},
		{"unknown engine", "[offload]\nload = \"falsh\"\n", nil},
		{"unknown lookup", "[offload]\nlookup = \"cpu\"\n", nil},
		{"lookup by the GPU for all blocks", "[system]\npreset = \"sparseserve\"\n[selection]\non = " +
			"false\n[offload]\nlookup = \"gpu\"\n", nil},
		{"lookup by the GPU for copies", "[system]\npreset = \"sparseserve\"\n[offload]\nload = " +
			"\"memcpy\"\nlookup = \"gpu\"\n", nil},
		{"flag: lookup by the GPU for copies", "[system]\npreset = \"vllm-so\"\n",
			[]string{"offload.lookup=gpu"}},
		{"heads that select per layer",
			"[system]\npreset = \"sparseserve\"\n[selection]\nper = \"layer\"\n", nil},
		{"scores of KV heads where query heads select", "system.preset = \"sparseserve\"\n" +
			"selection.per = \"query_head\"\noffload.eviction = \"score\"\n", nil},
		{"unknown stop", "[system]\npreset = \"vllm-psa\"\n[selection]\nstop = \"layers\"\n", nil},
		{"query heads that differ by less than nothing", "[scores]\ngroup = -0.5\n", nil},
		{"watermark of one", "[system]\nwatermark = 1.0\n", nil},
		{"dram that is no number", "[system]\ndram_gib = nan\n", nil},
		{"unknown system", "[system]\npreset = [\"vllm\", \"sparserve\"]\n", nil},
		{"system twice", "[system]\npreset = [\"vllm\", \"vllm\"]\n", nil},
		{"system without a name", "[[systems]]\noffload.working_set_steps = 3\n", nil},
		{"system with a path for a name", "[[systems]]\nname = \"../a\"\n", nil},
		{"system that starts from nothing", "[[systems]]\nname = \"a\"\npreset = \"vlm\"\n", nil},
		{"bad system of one's own", "[[systems]]\nname = \"a\"\nblock_tokens = 0\n", nil},
		{"name for all systems", "[system]\nname = \"a\"\n", nil},
		{"rate of a closed loop",
			"[workload]\narrivals = \"closed\"\nconcurrency = 4\nrate = 0.5\n", nil},
		{"clients that arrive at a rate", "[workload]\narrivals = \"poisson\"\nconcurrency = 4\n", nil},
		{"closed loop of nobody", "[workload]\narrivals = \"closed\"\n", nil},
		{"clients twice", "[workload]\nconcurrency = [4, 8, 4]\n", nil},
		{"no clients", "[workload]\nconcurrency = []\n", nil},
		{"negative clients", "[workload]\nconcurrency = [4, -1]\n", nil},
		{"time to think at a rate", "[workload]\nthink_s = 2\n", nil},
		{"speed at a rate", "[workload]\nspeed = 2\n", nil},
		{"burstiness of equal gaps", "[workload]\narrivals = \"fixed\"\nburstiness = 2\n", nil},
		{"burstiness of a closed loop", "[workload]\nconcurrency = 2\nburstiness = 2\n", nil},
		{"rate and stages", "[workload]\nrate = 1\nstages = [[60, 1]]\n", nil},
		{"stages of a closed loop", "[workload]\nconcurrency = 2\nstages = [[60, 1]]\n", nil},
		{"stage that is no pair", "[workload]\nstages = [[60, 1], [60]]\n", nil},
		{"stages without brackets", "[workload]\nstages = [60, 1]\n", nil},
		{"stages of words", "[workload]\nstages = [[\"a\", 1]]\n", nil},
		{"flag: stages", "", []string{"workload.stages=[[60, 1]"}},
		{"lengths and a trace", "[workload]\ntrace = \"longbench\"\nprompt_lengths = \"fixed(100)\"\n",
			nil},
		{"lengths of prompts only", "[workload]\nprompt_lengths = \"fixed(100)\"\nrate = 1\n", nil},
		{"unknown lengths", "[workload]\nprompt_lengths = \"lognorm(100, 1)\"\noutput_lengths = " +
			"\"fixed(9)\"\nrate = 1\n", nil},
		{"lengths that lack a number",
			"[workload]\nprompt_lengths = \"normal(100)\"\noutput_lengths = " +
				"\"fixed(9)\"\nrate = 1\n", nil},
		{"lengths that are a number", "[workload]\nprompt_lengths = 100\n", nil},
		{"flag: lengths", "",
			[]string{"workload.prompt_lengths=zipf(1)", "workload.output_lengths=fixed(2)",
				"workload.rate=1"}},
		{"negative seed", "seed = -1\n", nil},
		{"old name", "seeds = [1, 2]\n", nil},
		{"old name in a table", "[system]\nprefix_dram_gib = 8\n", nil},
		{"old name of a system", "[[systems]]\nname = \"a\"\noffload = true\n", nil},
		{"flag: old name", "", []string{"system.load_engine=flash"}},
		{"flag: old name with another value", "", []string{"system.attention=sparse"}},
		{"slo below zero", "[slo]\ndelay_s = -1\n", nil},
		{"unknown statistic", "[slo]\ndelay_stat = \"medium\"\n", nil},
		{"unknown rule of a cut-off", "[metrics]\nwarmup = \"mesr\"\n", nil},
		{"all cut off", "[metrics]\nwarmup = \"share\"\nwarmup_share = 0.5\ndrain = " +
			"\"share\"\ndrain_share = 0.5\n", nil},
		{"unknown model", "model = \"lwm-8b\"\n", nil},
		{"unknown card", "gpu = \"b100\"\n", nil},
		{"a copy faster than its link", "[card]\nlink_nominal = 20\n", nil},
		{"model larger than the card", "model = \"huge.toml\"\n", nil},
		{"more HBM than there is", "[system]\nkv_gib = 30.0\n", nil},
		{"not TOML", "model = \"lwm-7b\"\nseed = \n", nil},
		{"word without quotes", "model = llama3-8b # a name\n", nil},
		{"word without quotes in a table", "[sessions]\ncount = 5\nturns=fixed(3)\n", nil},
		{"time without quotes", "[slo]\ntbt_s = 100ms\n", nil},
		{"share without quotes", "[slo]\nmiss_share = 5%  # of all\n", nil},
		{"time in tokens", "[slo]\ntbt_s = \"64k\"\n", nil},
		{"tokens in K", "[system]\nmax_tokens = \"8K\"\n", nil},
		{"part of a token", "[system]\nmax_tokens = \"1.0001k\"\n", nil},
		{"share of two", "[slo]\nmiss_share = \"200%\"\n", nil},
		{"unit of a key that has none", "[workload]\nspeed = \"2x\"\n", nil},
		{"flag: rate in seconds", "", []string{"workload.rate=[1/s,2s]"}},
		{"flag: size in tokens", "", []string{"system.kv_gib=80k"}},
		{"arguments without quotes", "[workload]\noutput_lengths = lognormal(200, 0.5)\n", nil},
		{"dotted key without quotes", "[[axis]]\ngrid.offload.working_set_steps = wide\n", nil},
		{"truth twice", "[offload]\non = true\non = true\n", nil},
		{"truth in capitals", "[offload]\non = True\n", nil},
		{"truth and more", "[offload]\non = true false\n", nil},
		{"key twice", "seed = 1\nseed = 2\n", nil},
		{"flag: unknown key", "", []string{"workload.rte=1"}},
		{"flag: wrong type", "", []string{"workload.rate=fast"}},
		{"flag: wrong type of a system", "", []string{"offload.working_set_steps=x"}},
		{"flag: negative", "", []string{"workload.rate=-1"}},
		{"unknown fleet key", "[fleet]\nreplica = 3\n", nil},
		{"unknown router", "[fleet]\nrouter = \"least-token\"\n", nil},
		{"flag: several routers", "", []string{"fleet.router=[session,round-robin]"}},
		{"flag: several caches", "", []string{"prefix_cache.mode=[off,vllm]"}},
		{"flag: several statistics", "", []string{"slo.delay_stat=[p50,p99]"}},
		{"no replica", "[fleet]\nreplicas = 0\n", nil},
		{"no number of replicas", "[fleet]\nreplicas = []\n", nil},
		{"replicas twice", "[fleet]\nreplicas = [2, 2]\n", nil},
		{"failure without its end", "[fleet]\nreplicas = 2\nfail = [[120, 1]]\n", nil},
		{"failure that is no row", "[fleet]\nreplicas = 2\nfail = [120, 1, 60]\n", nil},
		{"failure of nobody", "[fleet]\nreplicas = [4, 2]\nfail = [[120, 3, 60]]\n", nil},
		{"failure of half a replica", "[fleet]\nreplicas = 2\nfail = [[120, 0.5, 60]]\n", nil},
		{"failure of no time", "[fleet]\nreplicas = 2\nfail = [[120, 1, 60], [200, 1, 0]]\n", nil},
		{"failure before the start", "[fleet]\nfail = [[-1, 0, 60]]\n", nil},
		{"all are drained", "[fleet]\nreplicas = 2\ndrain = [[300, 0], [100, 1]]\n", nil},
		{"flag: bad value of a system", "", []string{"selection.budget_tokens=16"}},
		{"flag: unknown value", "", []string{"prefill.split=layered"}},
		{"flag: no value", "", []string{"workload.rate"}},
		{"flag: no key", "", []string{"=3"}},
		{"flag: table", "", []string{"workload=3"}},
		{"flag: systems", "", []string{"systems.name=a"}},
		{"flag: key of another table", "", []string{"system.rate=3"}},
		{"flag: key outside of its table", "", []string{"hbm_size=3"}},
		{"flag: several cards", "", []string{"gpu=h200,b200"}},
		{"flag: no figure of a card", "", []string{"card.gpu=h200"}},
		{"flag: figure of a card below its name", "", []string{"gpu.hbm_size=3"}},
		{"gpu is a table", "[gpu]\n", nil},
		{"card of a system", "[[systems]]\nname = \"a\"\ngpu = \"h200\"\n", nil},
		{"flag: nested too deep", "", []string{"workload.rate.x=1"}},
		{"flag beats file", "[workload]\nrate = 0.1\n", []string{"workload.rate=0"}},
		{"file is right, preset is not", "[offload]\nbatch_control = true\n",
			[]string{"offload.working_set_steps=0"}},
	}
	var out strings.Builder
	for _, c := range cases {
		path := testkit.Write(t, "exp.toml", c.text)
		if err := os.WriteFile("huge.toml", []byte(huge), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := Load(path, c.sets)
		if err == nil {
			t.Errorf("%s: no error", c.name)
			continue
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error of several lines: %v", c.name, err)
		}
		out.WriteString(c.name + "\n    " + err.Error() + "\n")
	}
	testkit.Golden(t, "errors.txt", out.String())
}

func TestNoSuchFile(t *testing.T) {
	_, err := Load("defualt", nil)
	if err == nil || !strings.Contains(err.Error(), `did you mean "default"`) {
		t.Errorf("error is %v, want the experiment that is meant", err)
	}
}

// Keys of names, and of the reasons of rules, are keys of a configuration.
func TestRulesNameKeys(t *testing.T) {
	p := new(Point)
	for key := range names {
		if v, ok := p.Field(key); !ok || v.Kind() != reflect.String {
			t.Errorf("%s has names, and is no text of a configuration", key)
		}
	}
	for _, r := range slices.Concat(cutoffRules, systemRules, modelRules) {
		keys := append(strings.Fields(r.with), r.key)
		for _, word := range valueOfReason.FindAllString(r.reason, -1) {
			keys = append(keys, strings.Trim(word, "{}"))
		}
		for _, key := range keys {
			if _, ok := p.Field(key); !ok && key != "system" && key != "index_top_k" &&
				!strings.HasPrefix(key, "class ") {
				t.Errorf("a rule of %s names %s", r.key, key)
			}
		}
	}
}
