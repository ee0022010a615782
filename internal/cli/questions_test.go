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
}

const oneH100 = "--set gpu=h100-80gb --set system.preset=vllm-0.15 "
const fewSessions = "--set prefix_cache.mode=vllm --set workload.trace=sessions " +
	"--set workload.rate=1 --set workload.requests=20 "

var questions = []asking{
	{"Qwen3's README", "context of a config.json with YaRN", "list models yarn.json",
		[]string{"│ max_context        │ 131072"}, exitOK},
	{"Qwen3's README", "TTFT of 100,000 tokens with YaRN", "simulate --set model=yarn.json " +
		oneH100 + "--set workload.trace=synthetic --set workload.prompt_lengths=fixed(100000) " +
		"--set workload.output_lengths=fixed(10) --set workload.concurrency=1 " +
		"--set workload.requests=2 --json", []string{`"completed": 2`}, exitOK},
	{"vllm#12400", "an FP8 checkpoint as compressed-tensors", "list models fp8-compressed.json",
		[]string{"│ weight_bytes_each  │      1", "│ kv_bytes_each      │      1"}, exitOK},
	{"vllm#37307, #21793, #18115", "do long outputs preempt one another?", "simulate thrash.toml",
		[]string{"preempted", "recomputed"}, exitOK},
	{"vllm#37307", "and with whole-sequence admission, 0.19?",
		"simulate thrash.toml --set system.preset=vllm --json", []string{`"completed": 6`}, exitOK},
	{"qwen-bailian, dynamo#8998", "reuse in a trace of blocks of 16 tokens",
		"trace describe blocks-of-16.jsonl", []string{"blocks of 16 tokens", "over 49.3 s"}, exitOK},
	{"Azure LMM 2025", "lengths of a trace with images", "trace describe images.csv",
		[]string{"15 of 20 requests have images (NumImages)"}, exitOK},
	{"SGLang bench_serving", "is my SGLang server as fast as it should be?",
		"compare sglang-log.jsonl --set model=llama3.1-8b --set gpu=h100-80gb",
		[]string{"engine sglang-0.5", "They are made from its load"}, exitOK},
	{"LMCache#1241", "FP8 weights with KV in host memory", "simulate --set model=fp8-tier.json " +
		oneH100 + fewSessions + "--set prefix_cache.dram_gib=50", []string{"vllm-0.15"}, exitOK},
	{"LMCache#1241", "experts with KV in host memory", "simulate --set model=qwen3-30b-a3b " +
		"--set gpu=h200 --set system.tensor_parallel=8 --set system.preset=vllm-0.15 " + fewSessions +
		"--set prefix_cache.dram_gib=50", []string{"vllm-0.15"}, exitOK},
	{"vllm#8188", "which command starts the plan's server?", "plan --set model=llama-like.json " +
		oneH100 + "--set workload.trace=synthetic --set workload.prompt_lengths=fixed(2000) " +
		"--set workload.output_lengths=fixed(50) --set workload.rate=1 --set workload.requests=20 " +
		"--set slo.ttft_s=2 --set plan.prices=mid",
		[]string{"vllm serve MODEL --tensor-parallel-size 1"}, exitOK},
	{"Seed-OSS", "a model_type that is Llama-shaped", "list models llama-like.json",
		[]string{"│ qkv_bias           │    yes"}, exitOK},
	{"AIPerf", "an AIPerf log against the simulation",
		"compare aiperf.jsonl --set model=llama3.1-8b --set gpu=h100-80gb",
		[]string{"aiperf.jsonl (aiperf), 12 requests"}, exitOK},
	{"llm-d, Dynamo, SGLang router", "routing by prefix", "simulate router.toml",
		[]string{"4 replicas"}, exitOK},
	{"datacrunch h200-benchmarks", "Llama-3.3-70B under SGLang on four H200s",
		"list engines sglang-0.4", []string{"prefill first"}, exitOK},
}

// Each question gets its answer, and docs/questions.md lists all.
func TestQuestionsPage(t *testing.T) {
	dir := absolute(t, "testdata", "questions")
	page := absolute(t, "..", "..", "docs", "questions.md")
	table := "| from | question | command |\n|-|-|-|\n"
	for _, q := range questions {
		table += fmt.Sprintf("| %s | %s | `%s` |\n", q.from, q.asks, q.command)
	}
	testkit.Block(t, page, "questions", table)
	if testing.Short() {
		return
	}
	for _, q := range questions {
		t.Run(q.asks, func(t *testing.T) {
			status, out, errs := asked(t, dir, strings.Fields(q.command))
			for _, want := range q.want {
				if status != q.status || !strings.Contains(out+errs, want) {
					t.Errorf("sparseserve %s: status %d, lacks %q:\n%s%s", q.command, status, want, out, errs)
				}
			}
		})
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
