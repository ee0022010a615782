package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/experiments/testkit"
)

// asking is what somebody asked in public of a server, with a command that answers it over files
// of testdata/questions. Files were written anew from the shape of the public ones.
type asking struct {
	from, asks string
	command    string   // after sparseserve
	want       []string // parts of its output
	status     int
	part       string // what is missing of the answer; empty: nothing
}

// answer describes how far a question is answered.
func (q *asking) answer() string {
	switch {
	case q.status != exitOK:
		return "refused: " + q.part
	case q.part != "":
		return "in part: " + q.part
	}
	return "works"
}

const oneH100 = "--set gpu=h100-80gb --set system.preset=vllm-0.15 "
const llama = "--set model=llama3.1-8b --set gpu=h100-80gb "
const fewSessions = "--set prefix_cache.mode=vllm --set workload.trace=sessions " +
	"--set workload.rate=1 --set workload.requests=20 "
const twoPrompts = "--set workload.trace=untimed.jsonl --set workload.concurrency=1"
const eightH200 = "--set gpu=h200 --set system.tensor_parallel=8 "

func works(from, asks, command string, want ...string) asking {
	return asking{from, asks, command, want, exitOK, ""}
}

func inPart(missing, from, asks, command string, want ...string) asking {
	return asking{from, asks, command, want, exitOK, missing}
}

func refused(why, from, asks, command string, want ...string) asking {
	return asking{from, asks, command, want, exitFailed, why}
}

var questions = []asking{
	// checkpoints and cards
	works("Qwen3's README", "context of a config.json with YaRN", "list models yarn.json",
		"│ max_context        │ 131072"),
	works("Qwen3's README", "TTFT of 100,000 tokens with YaRN", "simulate --set model=yarn.json "+
		oneH100+"--set workload.trace=synthetic --set workload.prompt_lengths=fixed(100000) "+
		"--set workload.output_lengths=fixed(10) --set workload.concurrency=1 "+
		"--set workload.requests=2 --json", `"completed": 2`),
	works("vllm#12400", "an FP8 checkpoint as compressed-tensors", "list models fp8-compressed.json",
		"│ weight_bytes_each  │      1", "│ kv_bytes_each      │      1"),
	works("ModelOpt", "an FP8 checkpoint of modelopt", "list models modelopt.json",
		"│ weight_bytes_each  │      1"),
	works("AWQ", "a checkpoint of 4 bits", "list models awq.json", "weight_bytes_each"),
	refused("a mixed format of which kernels are not priced", "bitsandbytes", "4 bits on load",
		"list models mixed.json", "mixed.json:1: quantization_config"),
	works("Seed-OSS", "a model_type that is Llama-shaped", "list models llama-like.json",
		"│ qkv_bias           │    yes"),
	works("the hub", "a model by its id", "list models Qwen/Qwen3-32B",
		"│ max_context        │  40960"),
	refused("no such model; the nearest are named", "the hub", "an id with a typo",
		"list models Qwen/Qwen3-33B", "nearest in the catalogue are Qwen/Qwen3-32B"),
	works("buyers", "a B200", "list gpus b200", "gpu.hbm_size"),
	inPart("efficiencies are derived, not measured", "buyers", "a GH200", "list gpus gh200",
		"gh200-96gb"),
	inPart("efficiencies are derived, not measured", "buyers", "an MI300X", "list gpus mi300x",
		"MI300X"),
	works("vllm", "FP8 KV of a dense model", "simulate "+llama+"--set system.preset=vllm "+
		"--set system.kv_dtype=fp8 "+twoPrompts, "engine vllm-0.19"),

	// engines
	works("vllm#37307, #21793, #18115", "do long outputs preempt one another?", "simulate thrash.toml",
		"preempted", "recomputed"),
	works("vllm#37307", "and with whole-sequence admission, 0.19?",
		"simulate thrash.toml --set system.preset=vllm --json", `"completed": 6`),
	works("dynamo#9718", "what to buy for prompts of 60,000 tokens?", "plan thrash-plan.toml",
		"Buy 1 replica of vllm-0.15 gpu=h100-80gb", "preempted  ", "--gpu-memory-utilization 0.9"),
	works("vllm#51726", "defaults of vLLM 0.28 on a B200", "list engines vllm-0.28", "0.92 of HBM"),
	inPart("end to end is up to 16 % too short", "datacrunch h200-benchmarks",
		"Llama-3.3-70B under SGLang on four H200s", "list engines sglang-0.4", "prefill first"),
	works("vllm#8188", "which command starts the plan's server?", "plan --set model=llama-like.json "+
		oneH100+"--set workload.trace=synthetic --set workload.prompt_lengths=fixed(2000) "+
		"--set workload.output_lengths=fixed(50) --set workload.rate=1 --set workload.requests=20 "+
		"--set slo.ttft_s=2 --set plan.prices=mid",
		"vllm serve MODEL --max-num-seqs "),
	works("MInference", "TTFT of 200,000 tokens on an A100", "simulate --set model=llama3-8b "+
		"--set gpu=a100-80gb --set system.preset=vllm-minference --set workload.trace=synthetic "+
		"--set workload.prompt_lengths=fixed(200000) --set workload.output_lengths=fixed(2) "+
		"--set workload.concurrency=1 --set workload.requests=1 --json", `"completed": 1`),

	// prefix caches and tiers
	works("llm-d", "prefixes of a model with sliding windows", "simulate --set model=gpt-oss-20b "+
		oneH100+fewSessions, "prefix cache on"),
	works("LMCache#1241", "FP8 weights with KV in host memory", "simulate --set model=fp8-tier.json "+
		oneH100+fewSessions+"--set prefix_cache.dram_gib=50", "vllm-0.15"),
	works("LMCache#1241", "experts with KV in host memory", "simulate --set model=qwen3-30b-a3b "+
		eightH200+"--set system.preset=vllm-0.15 "+fewSessions+"--set prefix_cache.dram_gib=50",
		"vllm-0.15"),
	works("LMCache#1241", "latent attention with KV in host memory", "simulate --set "+
		"model=deepseek-v3 "+eightH200+"--set system.preset=vllm-0.15 "+fewSessions+
		"--set prefix_cache.dram_gib=50", "vllm-0.15"),
	works("LMCache#970", "does host memory of 500 GB hit?", "simulate "+llama+
		"--set system.preset=vllm-0.15 "+fewSessions+"--set prefix_cache.dram_gib=465 "+
		"--set system.dram_gib=500 --json",
		`"prefix_cache"`),
	works("HiSparse", "hot buffers with a prefix cache", "simulate --set model=deepseek-v3.2 "+
		eightH200+"--set system.preset=hisparse "+fewSessions, "hisparse"),
	works("HiSparse", "hot buffers with MTP", "simulate --set model=deepseek-v3.2 "+eightH200+
		"--set system.preset=hisparse --set speculation.tokens=2 "+twoPrompts, "hisparse"),
	works("llm-d, Dynamo, SGLang router", "routing by prefix", "simulate router.toml", "4 replicas"),

	// traces
	works("qwen-bailian, dynamo#8998", "reuse in a trace of blocks of 16 tokens",
		"trace describe blocks-of-16.jsonl", "blocks of 16 tokens", "over 49.3 s"),
	refused("ids of two sizes are never equal", "dynamo#8998", "a trace whose block sizes differ",
		"trace describe two-sizes.jsonl", "two-sizes.jsonl:2: hash_ids", "2 blocks of 512 tokens"),
	inPart("the time of images is left out, and counted", "Azure LMM 2025",
		"lengths of a trace with images", "trace describe images.csv",
		"15 of 20 requests have images (NumImages)"),
	works("Dynamo", "an agent's request trace", "trace describe dynamo.jsonl", "dynamo, 3 requests"),
	works("AIPerf", "conversations with delays", "trace describe aiperf-turns.jsonl",
		"aiperf, 3 requests"),
	works("AIPerf", "a Mooncake trace without times, one client", "simulate "+llama+
		"--set system.preset=vllm "+twoPrompts, "a closed loop of 1 clients"),
	works("BurstGPT", "sessions of a trace", "trace describe burstgpt.csv", "burstgpt, 4 requests"),
	works("ServeGen", "a generated workload", "trace describe servegen.csv", "servegen, 3 requests"),
	works("splitwise-sim", "a trace of another simulator", "trace describe splitwise-sim.csv",
		"splitwise-sim, 2 requests"),
	works("LLMServingSim", "agents with times of tools", "trace describe servesim_agents.jsonl",
		"llmservingsim, 3 requests"),
	works("vllm bench", "a custom dataset", "trace describe vllm_custom.jsonl",
		"vllm-custom, 3 requests"),

	// logs
	works("SGLang bench_serving", "is my SGLang server as fast as it should be?",
		"compare sglang-log.jsonl "+llama, "engine sglang-0.5", "They are made from its load"),
	works("SGLang bench_serving", "and of its aggregates alone?", "compare sglang-totals.jsonl "+llama,
		"Poisson arrivals at 4 requests/s, 100 to 500 prompt"),
	works("vllm bench serve", "aggregates of a run with failures", "compare vllm-totals.json "+llama,
		"4 requests at a time", "2 requests failed in the record"),
	works("AIPerf", "an AIPerf log against the simulation", "compare aiperf.jsonl "+llama,
		"aiperf.jsonl (aiperf), 12 requests"),
	works("genai-perf", "profile_export.json", "compare genai-perf.json "+llama,
		"genai-perf.json (genai-perf), 2 requests"),
	works("llmperf", "a log without times", "compare run_300_50_individual_responses.json "+llama,
		"(llmperf), 2 requests", "1 request failed"),
	works("LMBenchmark", "multi-round-qa's CSV", "compare lmbenchmark.csv "+llama,
		"2 requests over 2.00 s"),
	inPart("against vLLM's engine; TensorRT-LLM's is not simulated", "trtllm-bench", "its report",
		"compare trtllm-report.json "+llama, "(trtllm-bench), 20 requests"),
	refused("histograms have no requests; compare reads logs of clients", "Prometheus",
		"a server's /metrics", "compare metrics.txt "+llama, "metrics.txt:1: header"),
}

// docs/questions.md lists all questions.
func TestQuestionsPage(t *testing.T) {
	table := "| from | question | answer | command |\n|-|-|-|-|\n"
	for _, q := range questions {
		table += fmt.Sprintf("| %s | %s | %s | `%s` |\n", q.from, q.asks, q.answer(),
			strings.TrimSpace(q.command))
	}
	testkit.Block(t, absolute(t, "..", "..", "docs", "questions.md"), "questions", table)
}

// Each question gets its answer.
func TestQuestionsAreAnswered(t *testing.T) {
	if testing.Short() {
		t.Skip("makes runs")
	}
	dir, whole := absolute(t, "testdata", "questions"), 0
	for _, q := range questions {
		if q.status == exitOK && q.part == "" {
			whole++
		}
		t.Run(q.asks, func(t *testing.T) {
			status, out, errs := asked(t, dir, strings.Fields(q.command))
			for _, want := range q.want {
				if status != q.status || !strings.Contains(out+errs, want) {
					t.Errorf("sparseserve %s: status %d, lacks %q:\n%s%s", q.command, status, want, out, errs)
				}
			}
		})
	}
	if whole < 38 {
		t.Errorf("%d of %d questions are answered in full", whole, len(questions))
	}
}

func absolute(t *testing.T, path ...string) string {
	t.Helper()
	abs, err := filepath.Abs(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return abs
}

// asked carries out a command in a folder with the files of the questions.
func asked(t *testing.T, dir string, args []string) (status int, stdout, stderr string) {
	t.Helper()
	here := t.TempDir()
	if err := os.CopyFS(here, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	t.Chdir(here)
	return runHere(t.Context(), run.NewSimulator().Run, args...)
}

// Prompts that begin alike are computed once where the router sends them to the replica that has
// them: mean TTFT is at most two thirds of that of a router by load.
func TestRoutingByPrefixPays(t *testing.T) {
	dir := absolute(t, "testdata", "questions")
	ttft := map[string]float64{}
	for _, router := range []string{"prefix", "least-tokens"} {
		_, out, errs := asked(t, dir, []string{"simulate", "router.toml", "--json",
			"--set", "fleet.router=" + router})
		var runs []struct {
			TTFT struct{ Mean float64 } `json:"ttft_s"`
		}
		text := strings.TrimSpace(out)
		if !strings.HasPrefix(text, "[") {
			text = "[" + text + "]"
		}
		if err := json.Unmarshal([]byte(text), &runs); err != nil || len(runs) != 1 {
			t.Fatalf("%v: %s%s", err, out, errs)
		}
		ttft[router] = runs[0].TTFT.Mean
	}
	if ttft["prefix"] > ttft["least-tokens"]*2/3 {
		t.Errorf("mean TTFT %v s", ttft)
	}
}
