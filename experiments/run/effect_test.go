package run

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
)

// tinyModel is small enough that thousands of its runs take seconds, tinyIndexed has an indexer and
// experts.
const (
	tinyModel = "name = \"tiny\"\nlayers = 3\nhidden = 512\nq_heads = 8\nkv_heads = 4\nhead_dim = " +
		"64\n" +
		"ffn = 1024\nvocab = 9000\nmax_context = 9000\ntokenizer = \"llama2\"\n" +
		"tied_embeddings = false\nqkv_bias = false\nweight_bytes_each = 2\nkv_bytes_each = 2\nsource " +
		"= \"x\"\n"
	tinyIndexed = "name = \"tiny\"\nlayers = 3\nhidden = 1024\nq_heads = 8\nkv_heads = 1\nhead_dim " +
		"= 192\n" +
		"ffn = 1024\nvocab = 9000\nmax_context = 9000\ntokenizer = \"llama2\"\n" +
		"tied_embeddings = false\nqkv_bias = false\nweight_bytes_each = 2\nkv_bytes_each = 1\nsource " +
		"= \"x\"\n" +
		"kv_lora_rank = 512\nqk_rope_dim = 64\nqk_nope_dim = 128\nv_head_dim = 128\nq_lora_rank = 256\n" +
		"index_top_k = 512\nindex_heads = 8\nindex_head_dim = 128\nindex_key_bytes = 132\nexperts = 8\n" +
		"experts_per_token = 2\nshared_experts = 1\nexpert_ffn = 256\ndense_layers = 1\nmtp_layers = 1\n"
)

// engine05 is the engine of the papers: it has a watermark, and leaves blocks to working sets.
const engine05 = "system.engine=vllm-0.5"

// Systems and workloads in which keys have an effect.
var (
	dense   = []string{"system.preset=vllm", engine05}
	inHBM   = []string{"system.preset=vllm-s", engine05, "selection.budget_tokens=256"}
	offload = []string{"system.preset=vllm-so", engine05, "selection.budget_tokens=256",
		"system.kv_gib=0.006"}
	byLayer = []string{"system.preset=sparseserve", engine05, "selection.budget_tokens=256",
		"prefill.max_inject=900"}
	psa    = []string{"system.preset=vllm-psa", engine05, "system.kv_gib=0.006"}
	infini = []string{"system.preset=vllm-so", engine05, "selection.policy=infinigen",
		"system.block_tokens=1"}
	recall  = append(slices.Clone(inHBM), "output.recall_proxy=true")
	indexed = []string{"model=indexed.toml", "system.preset=dsa", "selection.budget_tokens=512"}
	hot     = []string{"model=indexed.toml", "system.preset=hisparse", "selection.budget_tokens=512",
		"offload.hot_buffer=640"}
	sessions = []string{"system.preset=vllm-0.15", "workload.trace=sessions",
		"workload.prompt_lengths=fixed(300)",
		"workload.output_lengths=fixed(12)", "workload.think_s=0.01",
		"sessions.system_lengths=fixed(400)",
		"prefix_cache.mode=vllm", "system.kv_gib=0.006"}
	tiers = append(slices.Clone(sessions), "prefix_cache.dram_gib=0.004", "prefix_cache.ssd_gib=0.1")
	hits  = append(slices.Clone(offload), "workload.prefix_hit=0.6")
	pair  = []string{"system.preset=vllm", engine05, "fleet.replicas=2"}
	mix   = []string{"system.preset=vllm", engine05, "workload.trace=longbench", "workload.requests=4"}
)

func and(sets []string, more ...string) []string { return append(slices.Clone(sets), more...) }

// keyEffects has, for each key of a configuration, a value that changes results in a run that uses
// it.
var keyEffects = []struct {
	key, value string
	in         []string
}{
	{"system.engine", "vllm-0.15", dense}, {"system.use", "offline", and(dense, "gpu=h100-80gb",
		"system.engine=vllm-0.15",
		"workload.requests=30", "workload.rate=4000", "system.kv_gib=1")},
	{"selection.on", "false", offload},
	{"selection.budget_tokens", "512", offload}, {"system.block_tokens", "64", dense},
	{"selection.sink_blocks", "4", offload}, {"selection.recent_blocks", "4", offload},
	{"selection.dense_layers", "1", offload}, {"selection.policy", "quest", offload},
	{"selection.epsilon", "0.999", psa}, {"selection.microbatch", "3", psa},
	{"selection.pipelined", "false", psa}, {"selection.stop", "head", psa},
	{"selection.margin", "1", infini}, {"offload.on", "true", inHBM},
	{"offload.load", "flash", offload}, {"offload.save", "flash", offload},
	{"offload.lookup", "gpu", and(offload, "offload.load=flash", "gpu=h100-80gb",
		"system.engine=sparseserve-live")},
	{"offload.hot_buffer", "1024", hot}, {"offload.hot_release", "short", hot},
	{"offload.host_pool_ratio", "0.1", and(hot, "system.kv_gib=0.02")}, {"offload.eviction", "fifo",
		offload},
	{"offload.pool", "per-layer", offload}, {"system.tensor_parallel", "2", dense},
	{"system.expert_parallel", "2", and(indexed, "system.tensor_parallel=2")},
	{"system.utilisation", "0.5", and(dense, "system.kv_gib=0")}, {"system.kv_gib", "0.01", dense},
	{"prefix_cache.mode", "off", sessions}, {"prefix_cache.dram_gib", "0.1", sessions},
	{"prefix_cache.ssd_gib", "0.1", sessions}, {"prefix_cache.drive", "drive.toml", tiers},
	{"prefix_cache.chunk", "16", tiers}, {"prefix_cache.eviction", "fifo", and(sessions,
		"prefix_cache.dram_gib=0.003", "workload.requests=40")},
	{"prefix_cache.write", "back", tiers},
	{"prefix_cache.write_hits", "3", and(tiers, "prefix_cache.write=selective")},
	{"prefix_cache.load", "recompute", tiers}, {"prefix_cache.load_tokens", "9000", tiers},
	{"prefix_cache.overlap", "none", tiers}, {"system.dram_gib", "0.01", offload},
	{"offload.save_buffer_mib", "0", offload}, {"system.scheduler", "vllm-v1", and(dense,
		"system.kv_gib=0.006", "workload.rate=400")},
	{"system.max_requests", "1", dense}, {"system.max_tokens", "300", dense},
	{"system.conservativeness", "3", []string{"system.preset=sglang", "model=llama3-8b",
		"gpu=h100-80gb", "workload.requests=40", "workload.rate=4000", "system.kv_gib=2",
		"workload.prompt_lengths=fixed(500)", "workload.output_lengths=fixed(1000)"}},
	{"system.watermark", "0.7", dense}, {"offload.batch_control", "true", offload},
	{"offload.working_set_steps", "1", and(offload, "offload.batch_control=true")},
	{"speculation.tokens", "1", and(indexed, "model=mtp.toml", "system.preset=vllm-0.15")},
	{"speculation.acceptance", "0.9",
		and(indexed, "model=mtp.toml", "system.preset=vllm-0.15", "speculation.tokens=1")},
	{"system.kv_dtype", "fp8", []string{"system.preset=vllm-0.15"}},
	{"system.sampling", "top-p", []string{"system.preset=vllm-0.15", "system.sampling=random"}},
	{"prefill.split", "plain", dense},
	{"prefill.attention", "a-shape", dense},
	{"prefill.pattern", "patterns.json", and(dense, "prefill.attention=minference")},
	{"prefill.sink_tokens", "100", and(dense, "prefill.attention=a-shape",
		"prefill.recent_tokens=100")},
	{"prefill.recent_tokens", "300", and(dense, "prefill.attention=a-shape",
		"prefill.sink_tokens=100")},
	{"prefill.vertical", "30", and(dense, "prefill.attention=vertical-slash",
		"prefill.slash=90")},
	{"prefill.slash", "90", and(dense, "prefill.attention=vertical-slash",
		"prefill.vertical=30")},
	{"prefill.blocks", "2", and(dense, "prefill.attention=block-sparse")},
	{"prefix_cache.attend", "selected", hits}, {"prefill.chunk_tokens", "256", dense},
	{"prefill.max_inject", "4000", byLayer}, {"prefix_cache.load_weight", "0.9", and(hits,
		"workload.rate=400", "system.kv_gib=0.1")},
	{"prefill.over_length", "reject", and(dense, "prefill.max_prompt_tokens=900")},
	{"prefill.max_prompt_tokens", "900", dense}, {"simulation.heads", "full", and(offload,
		"simulation.groups=4")},
	{"simulation.groups", "4", offload},

	{"workload.trace", "own.csv", mix}, {"workload.format", "mooncake", and(dense,
		"workload.trace=both.jsonl")},
	{"workload.prompt_lengths", "fixed(800)", dense}, {"workload.output_lengths", "fixed(9)", dense},
	{"sessions.count", "3", and(sessions, "workload.requests=0", "sessions.count=2")},
	{"sessions.turns", "fixed(5)", sessions}, {"sessions.system_prompts", "1", sessions},
	{"sessions.system_lengths", "fixed(30)", sessions}, {"sessions.system_zipf", "4", sessions},
	{"longbench.datasets", "lcc", mix}, {"workload.tokenizer", "llama3", mix},
	{"workload.arrivals", "fixed", dense}, {"workload.rate", "9", dense},
	{"workload.burstiness", "3", and(dense, "workload.arrivals=gamma")},
	{"workload.speed", "2", and(dense, "workload.trace=own.csv", "workload.arrivals=trace")},
	{"workload.stages", "[[1, 2], [1, 9]]", dense}, {"workload.concurrency", "2", dense},
	{"workload.think_s", "3", sessions}, {"workload.requests", "5", dense},
	{"longbench.output", "instruct", mix}, {"workload.output_scale", "3", dense},
	{"workload.prefix_hit", "0.5", dense},

	{"fleet.replicas", "3", pair}, {"fleet.router", "least-tokens", pair},
	{"fleet.fail", "[[0.01, 0, 1]]", pair}, {"fleet.drain", "[[0.01, 0]]", pair},

	{"slo.rule", "requests", dense}, {"slo.miss_share", "0.5", dense}, {"slo.ttft_s", "0.1", dense},
	{"slo.ttft_stat", "p50", and(dense, "slo.ttft_s=1")}, {"slo.tbt_factor", "3", dense},
	{"slo.tbt_s", "1", dense}, {"slo.tbt_stat", "p50", dense}, {"slo.tpot_s", "1", dense},
	{"slo.tpot_stat", "p50", and(dense, "slo.tpot_s=1")}, {"slo.e2e_s", "1", dense},
	{"slo.e2e_stat", "p50", and(dense, "slo.e2e_s=1")}, {"slo.delay_s", "1", dense},
	{"slo.delay_stat", "p50", dense},

	{"metrics.warmup", "share", dense}, {"metrics.drain", "share", and(dense,
		"metrics.drain_share=0.3")},
	{"metrics.warmup_share", "0.6", and(dense, "metrics.warmup=share")},
	{"metrics.drain_share", "0.6", and(dense, "metrics.drain=share")},
	{"output.recall_proxy", "true", inHBM},

	{"card.peak_fp16", "10", dense}, {"card.hbm_bandwidth", "100", dense},
	{"card.hbm_size", "20", dense}, {"card.runtime", "9", dense},
	{"card.link_h2d", "2", offload},
	{"card.link_d2h", "2", tiers}, {"card.link_duplex_copy", "2", offload},
	{"card.link_duplex_kernel", "2", and(offload, "offload.load=flash")},
	{"card.cpu_cores", "1", byLayer},
	{"card.cpu_speed", "0.5", dense},

	{"scores.drift", "0.9", offload}, {"scores.rho", "0.1", offload}, {"scores.noise", "0.9", offload},
	{"scores.jump", "0.1", offload}, {"scores.jump_rate", "0.5", offload},
	{"scores.token_motion", "0.9", hot}, {"estimates.cuboid_mean", "0.9", recall},
	{"estimates.min_max", "0.9", and(recall, "selection.policy=quest")},
	{"estimates.mean", "0.9", and(recall, "selection.policy=mean")},
	{"estimates.representative", "0.9", and(recall, "selection.policy=infllm")},
	{"estimates.speculation", "0.1", infini}, {"scores.within", "0.1", infini},
	{"scores.sink", "0", psa}, {"scores.recent", "0", psa}, {"scores.group", "2", recall},
	{"scores.skew", "0.5", psa}, {"scores.skew_layers", "0.9", psa}, {"scores.skew_heads", "0.9", psa},
	{"scores.skew_tokens", "0.9", psa},
}

// withoutResults are keys that change no figure, and selection.recording, which needs a recording.
var withoutResults = []string{"selection.per", // TestSelectionsPerQueryHead
	"card.link_nominal", // bounds the others
	"output.steps", "output.trace", "selection.recording"}

// quietWhenDense are keys whose value in keyEffects is that of dense vLLM, or for which no
// request there is long enough, the load too low, or the memory given by kv_gib.
var quietWhenDense = []string{"selection.on", "prefix_cache.mode", "prefill.over_length",
	"system.utilisation", "system.scheduler", "system.sampling"}

// effectBase comes before the sets of a row.
var effectBase = []string{"model=tiny.toml", "gpu=a100-40gb",
	"workload.requests=8", "system.kv_gib=0.02"}

func effectFiles(t *testing.T) {
	mixed := strings.ReplaceAll(tinyIndexed,
		"index_top_k = 512\nindex_heads = 8\nindex_head_dim = 128\n"+
			"index_key_bytes = 132\n", "")
	both := `{"dataset": "lcc", "length": 900, "answers": ["a"], "input_length": 700, "output_length": 9, "timestamp": 0}` + "\n"
	drive, err := os.ReadFile("../../hw/drives/pm9a3.toml")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	layer := `{"0": ["stream_llm", 100, 100, 1]` +
		strings.Repeat(`, "N": ["stream_llm", 100, 100, 1]`, 7) + "}"
	for n := range 7 {
		layer = strings.Replace(layer, "N", string(rune('1'+n)), 1)
	}
	for name, text := range map[string]string{"tiny.toml": tinyModel,
		"drive.toml":    strings.ReplaceAll(string(drive), "value = 6500", "value = 65"),
		"patterns.json": "[" + layer + ", " + layer + ", " + layer + "]", "indexed.toml": tinyIndexed,
		"mtp.toml": mixed, "both.jsonl": both,
		"own.csv": "arrived_s,prompt_tokens,output_tokens\n0,900,9\n1,900,9\n"} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// effectOf runs the first point of a configuration: its figures and requests, and its warnings of
// keys.
func effectOf(x *Simulator, sets []string) (figures string, unused []string, err error) {
	all := append(slices.Clone(effectBase), sets...)
	said := strings.Join(sets, " ")
	if !strings.Contains(said, "workload.rate=") && !strings.Contains(said, "workload.speed=") &&
		!strings.Contains(said, "arrivals=trace") && !strings.Contains(said, "workload.stages=") &&
		!strings.Contains(said, "concurrency=") {
		all = append(all, "workload.rate=40")
	}
	if !strings.Contains(said, "workload.trace=") {
		all = append([]string{"workload.prompt_lengths=uniform(600,1500)",
			"workload.output_lengths=fixed(12)"}, all...)
	}
	c, err := config.Load("", all)
	if err != nil {
		return "", nil, err
	}
	p := c[0]
	var rows bytes.Buffer
	sum, err := x.Run(context.Background(), p, Sink{Requests: &rows})
	sum.Warnings = nil
	text, bad := json.Marshal(sum)
	if err == nil {
		err = bad
	}
	return string(text) + rows.String(), warn.Texts(p.Warnings), err
}

// Every key has an effect in some run, without a warning. In a run of dense vLLM, where most have
// none, it is refused, or warned of and changes no byte, or used.
func TestKeysHaveAnEffectOrAWarning(t *testing.T) {
	effectFiles(t)
	x := NewSimulator()
	bases := map[string]string{}
	base := func(sets []string) string {
		name := strings.Join(sets, " ")
		if bases[name] == "" {
			figures, _, err := effectOf(x, sets)
			if err != nil {
				t.Fatalf("%s: %v", sets, err)
			}
			bases[name] = figures
		}
		return bases[name]
	}
	for _, k := range keyEffects {
		set := k.key + "=" + k.value
		warned := func(unused []string) bool {
			return slices.ContainsFunc(unused, func(w string) bool {
				return strings.HasPrefix(w,
					"--set "+set)
			})
		}
		figures, unused, err := effectOf(x, and(k.in, set))
		if err != nil || warned(unused) || figures == base(k.in) {
			t.Errorf("%s with %s: %v, %q, changes results: %t", set, k.in, err, unused,
				figures != base(k.in))
		}
		figures, unused, err = effectOf(x, and(dense, set))
		if err == nil && !slices.Contains(quietWhenDense, k.key) &&
			warned(unused) != (figures == base(dense)) {
			t.Errorf("%s with dense vLLM: %q, changes results: %t", set, unused, figures != base(dense))
		}
	}
}

// No key is left out.
func TestEveryKeyIsTried(t *testing.T) {
	for _, key := range config.SettableKeys() {
		if !strings.Contains(key, ".") || key == "system.preset" {
			continue // what runs
		}
		tried := slices.ContainsFunc(keyEffects, func(k struct {
			key, value string
			in         []string
		}) bool {
			return k.key == key
		})
		if tried == slices.Contains(withoutResults, key) {
			t.Errorf("%s: neither tried nor without results, or both", key)
		}
	}
}

// A model whose query heads share no KV head gives the same bytes by either reading. One whose do
// attends to more where each selects for itself, between one and all of their selections.
func TestSelectionsPerQueryHead(t *testing.T) {
	serve := func(model, per string) (text string, attention float64) {
		c := mustLoad(t, "", "model="+model, "gpu=a100-40gb", "system.preset=sparseserve",
			"selection.per="+per, "workload.rate=1", "workload.requests=4")
		sum, err := NewSimulator().Run(t.Context(), c[0], Sink{})
		if err != nil {
			t.Fatal(err)
		}
		bytes, err := json.Marshal(sum)
		if err != nil {
			t.Fatal(err)
		}
		return string(bytes), sum.PhaseS["sparse_attention"]
	}
	a, _ := serve("lwm-7b", sim.PerKVHead)
	if b, _ := serve("lwm-7b", sim.PerQueryHead); a != b {
		t.Errorf("lwm-7b: the runs differ:\n%s\n%s", a, b)
	}
	_, together := serve("llama3-8b", sim.PerKVHead)
	_, apart := serve("llama3-8b", sim.PerQueryHead)
	if apart < 1.1*together || apart > 4*together {
		t.Errorf("llama3-8b: %.3f s of attention where query heads select apart, %.3f s together", apart,
			together)
	}
}
