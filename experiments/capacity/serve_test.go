package capacity

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
)

func TestServeCommand(t *testing.T) {
	kv8 := filepath.Join(t.TempDir(), "config.json") // FP8 weights and KV
	if err := os.WriteFile(kv8, []byte(`{"model_type": "llama", "num_hidden_layers": 32,
		"hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8, "torch_dtype": "bfloat16",
		"intermediate_size": 14336, "vocab_size": 128256, "max_position_embeddings": 8192,
		"quantization_config": {"quant_method": "modelopt", "quant_algo": "FP8",
		"kv_cache_quant_algo": "FP8"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		sets []string
		want string // of the command, to its end with $, or why there is none
	}{
		{[]string{"model=llama3.1-8b", "gpu=h100-80gb", "system.preset=vllm-0.15",
			"system.tensor_parallel=2"},
			"vllm serve meta-llama/Llama-3.1-8B --tensor-parallel-size 2 --max-num-seqs 1024 " +
				"--max-num-batched-tokens 8192 --gpu-memory-utilization 0.9$"},
		{[]string{"model=llama3.1-8b", "gpu=a100-40gb", "system.preset=vllm-0.15", "system.kv_gib=4",
			"prefill.chunk_tokens=512", "system.max_requests=64"},
			"--max-num-seqs 64 --max-num-batched-tokens 2048 --kv-cache-memory-bytes 4294967296 " +
				"--max-model-len auto --long-prefill-token-threshold 512"},
		{[]string{"model=llama2-7b", "gpu=a100-40gb", "system.preset=vllm", "workload.prefix_hit=0.5"},
			"--max-num-batched-tokens 2048 --gpu-memory-utilization 0.9"},
		{[]string{"model=deepseek-v3", "gpu=h200", "system.preset=vllm-0.15", "system.tensor_parallel=8",
			"speculation.tokens=2"},
			`--speculative-config '{"method":"mtp","num_speculative_tokens":2}'`},
		{[]string{"model=deepseek-v3", "gpu=h200", "system.preset=vllm-0.15", "system.tensor_parallel=8",
			"system.expert_parallel=8"}, "--tensor-parallel-size 8 --enable-expert-parallel "},
		{[]string{"model=deepseek-v3", "gpu=h200", "system.preset=vllm-0.15", "system.tensor_parallel=8",
			"system.expert_parallel=4"}, "vLLM spreads experts over all GPUs or none"},
		{[]string{"gpu=a100-80gb", "system.preset=vllm-s"}, "vLLM as released has no such sparse"},
		{[]string{"gpu=h200", "system.preset=vllm", "system.engine=sparseserve-live"},
			"engine sparseserve-live is neither vLLM nor SGLang"},
		{[]string{"gpu=h200", "system.preset=vllm", "system.scheduler=sarathi"}, `system.scheduler = "sarathi"`},
		{[]string{"model=llama3-8b", "gpu=h100-80gb", "system.preset=vllm-0.15",
			"system.block_tokens=32", "prefix_cache.mode=vllm", "prefix_cache.dram_gib=64"},
			"--block-size 32 --kv-offloading-size 64 --kv-offloading-backend native"},
		{[]string{"model=llama3-8b", "gpu=h100-80gb", "system.preset=vllm-0.15",
			"prefix_cache.mode=radix"}, "the radix tree of SGLang"},
		{[]string{"model=llama3.1-8b", "gpu=h100-80gb", "system.preset=sglang",
			"system.tensor_parallel=2"},
			"python -m sglang.launch_server --model-path meta-llama/Llama-3.1-8B --tp-size 2 " +
				"--max-running-requests 2048 --chunked-prefill-size 8192 --mem-fraction-static 0.829$"},
		{[]string{"model=llama3.1-8b", "gpu=h100-80gb", "system.preset=sglang", "system.kv_gib=4",
			"system.kv_dtype=fp8", "system.conservativeness=0.3", "system.block_tokens=64",
			"prefix_cache.chunk=64", "prefix_cache.dram_gib=93.2", "prefix_cache.write=back"},
			"--max-total-tokens 65536 --page-size 64 --kv-cache-dtype fp8_e4m3 " +
				"--schedule-conservativeness 0.3 --enable-hierarchical-cache --hicache-size 100 " +
				"--hicache-write-policy write_back"},
		{[]string{"model=llama3.1-8b", "gpu=h100-80gb", "system.preset=sglang", "system.kv_gib=40"},
			"--mem-fraction-static 0.83 --max-total-tokens 327680$"},
		{[]string{"model=Qwen/Qwen3-32B", "gpu=b200", "system.preset=vllm",
			"system.engine=vllm-0.28"}, "vllm serve Qwen/Qwen3-32B " +
			"--max-num-seqs 1024 --max-num-batched-tokens 16384 --gpu-memory-utilization 0.92$"},
		{[]string{"model=deepseek-v3", "gpu=h200", "system.preset=sglang", "system.tensor_parallel=8",
			"system.expert_parallel=8", "prefix_cache.mode=off", "prefill.split=plain",
			"speculation.tokens=2"}, "--ep-size 8 --max-running-requests 2048 --chunked-prefill-size " +
			"-1 --max-prefill-tokens 8192 --mem-fraction-static 0.893 " +
			"--disable-radix-cache --speculative-algorithm EAGLE --speculative-num-steps 2 " +
			"--speculative-eagle-topk 1 --speculative-num-draft-tokens 3"},
		{[]string{"model=llama3.1-8b", "gpu=h100-80gb", "system.preset=sglang",
			"prefix_cache.mode=vllm"}, "SGLang caches prefixes by a radix tree"},
		// Commands with which the server would stop at once.
		{[]string{"model=llama3.1-8b", "gpu=h100-80gb", "system.preset=vllm", "prefill.split=plain"},
			"--max-model-len 8192 --no-enable-chunked-prefill"},
		{[]string{"model=llama3.1-8b", "gpu=h100-80gb", "system.preset=vllm", "system.max_tokens=512"},
			"--max-num-seqs 512 --max-num-batched-tokens 512 "},
		{[]string{"model=llama3.1-8b", "gpu=h100-80gb", "system.preset=sglang",
			"system.block_tokens=48", "prefix_cache.mode=off"}, "--chunked-prefill-size 8160 "},
		{[]string{"model=llama3.1-8b", "gpu=h100-80gb", "system.preset=sglang",
			"system.block_tokens=64", "prefix_cache.chunk=64", "prefix_cache.dram_gib=32"},
			"SGLang does not start with less KV in host memory than in HBM"},
		{[]string{"model=llama3.1-8b", "gpu=h100-80gb", "system.preset=vllm",
			"system.engine=vllm-0.5"}, "python -m vllm.entrypoints.openai.api_server --model " +
			"meta-llama/Llama-3.1-8B --max-num-seqs 256 --max-num-batched-tokens 2048 " +
			"--gpu-memory-utilization 0.9 --enable-chunked-prefill"},
		{[]string{"model=llama3.1-8b", "gpu=h100-80gb", "system.preset=vllm",
			"system.engine=vllm-0.5", "workload.prefix_hit=0.5"}, "fails at a prefix hit"},
		{[]string{"model=deepseek-v3", "gpu=h200", "system.preset=vllm", "system.engine=vllm-0.5",
			"system.tensor_parallel=8", "system.expert_parallel=8"}, "nor expert parallelism"},
		// The type of KV is said only where it is not the server's default.
		{[]string{"model=llama3.1-8b", "gpu=h100-80gb", "system.preset=vllm-0.15",
			"system.kv_dtype=bf16"}, "--gpu-memory-utilization 0.9$"},
		{[]string{"model=llama3.1-8b", "gpu=h100-80gb", "system.preset=vllm-0.15",
			"system.kv_dtype=fp8"}, "--gpu-memory-utilization 0.9 --kv-cache-dtype fp8$"},
		{[]string{"model=" + kv8, "gpu=h100-80gb", "system.preset=vllm-0.15",
			"system.kv_dtype=bf16"}, "--kv-cache-dtype bfloat16"},
		{[]string{"model=deepseek-v3.2", "gpu=h200", "system.preset=vllm",
			"system.tensor_parallel=8"}, "--gpu-memory-utilization 0.9$"},
		{[]string{"model=deepseek-v3.2", "gpu=h200", "system.preset=sglang",
			"system.tensor_parallel=8"}, "--mem-fraction-static 0.893$"},
		{[]string{"model=deepseek-v3.2", "gpu=b200", "system.preset=sglang",
			"system.tensor_parallel=8"}, "--kv-cache-dtype fp8_e4m3"},
		{[]string{"model=deepseek-v3", "gpu=b200", "system.preset=sglang",
			"system.tensor_parallel=8"}, "--mem-fraction-static 0.85$"},
		{[]string{"model=deepseek-v3.2", "gpu=mi355x", "system.preset=sglang",
			"system.tensor_parallel=8"}, "--mem-fraction-static 0.906$"},
		{[]string{"model=deepseek-v3.2", "gpu=b200", "system.preset=sglang",
			"system.tensor_parallel=8", "system.kv_dtype=bf16"}, "--kv-cache-dtype bf16"},
	} {
		cfg, err := config.Load("", c.sets)
		if err != nil {
			t.Fatal(err)
		}
		command, why, err := ServeCommand(&cfg[0])
		if err != nil || !strings.Contains(command+why+"$", c.want) || (command == "") == (why == "") {
			t.Errorf("%q: %q, %q, %v; want %q", c.sets, command, why, err, c.want)
		}
	}
}

// TestServeLacks: what a command leaves out of tiers of a prefix cache is said.
func TestServeLacks(t *testing.T) {
	for want, sets := range map[string][]string{
		"": nil,
		`prefix_cache.write = "back" is not expressed`: {"prefix_cache.dram_gib=64",
			"prefix_cache.write=back"},
		"prefix_cache.ssd_gib = 512 is not expressed: vLLM needs": {"prefix_cache.dram_gib=64",
			"prefix_cache.ssd_gib=512"},
	} {
		cfg, err := config.Load("", append([]string{"model=llama3-8b", "gpu=h100-80gb",
			"system.preset=vllm-0.15", "prefix_cache.mode=vllm"}, sets...))
		if err != nil {
			t.Fatal(err)
		}
		p := &cfg[0]
		command, _, err := ServeCommand(p)
		if err != nil || strings.Contains(command, vllmUncached) ||
			strings.Contains(command, "--kv-offloading-size 64") != (len(sets) > 0) {
			t.Errorf("%q: command %q, %v", sets, command, err)
		}
		if lacks := ServeLacks(p); !strings.Contains(lacks, want) || (lacks == "") != (want == "") {
			t.Errorf("%q: lacks %q, want %q", sets, lacks, want)
		}
	}
}

// A command names the repository, the folder of a config.json, or a placeholder for the weights of
// a file of another name; never a folder in which vLLM finds no config.json.
func TestServedModel(t *testing.T) {
	for _, c := range []struct{ model, source, want string }{
		{"llama3.1-8b", "config.json of meta-llama/Llama-3.1-8B, 2024", "meta-llama/Llama-3.1-8B"},
		{"own", "measured", "own"},
		{"models/qwen/config.json", "config.json", "models/qwen"},
		{"my models/qwen/config.json", "config.json", "'my models/qwen'"},
		{"it's/config.json", "config.json", `'it'\''s'`},
		{"out/models/my-model.json", "config.json", "MODEL"}, {"shape.toml", "", "MODEL"},
	} {
		if got := servedModel(c.model, c.source); got != c.want {
			t.Errorf("%s: %s, want %s", c.model, got, c.want)
		}
	}
}

// A flag that switches prefix caching off is there for who set it, and is explained.
func TestNoDefaultIsSwitchedOff(t *testing.T) {
	for _, off := range []bool{false, true} {
		sets := []string{"model=llama3.1-8b", "gpu=h100-80gb", "system.preset=vllm"}
		if off {
			sets = append(sets, "prefix_cache.mode=off")
		}
		cfg, err := config.Load("", sets)
		if err != nil {
			t.Fatal(err)
		}
		p := &cfg[0]
		command, _, err := ServeCommand(p)
		if err != nil || strings.Contains(command, "--no-enable-prefix-caching") != off ||
			strings.Contains(ServeLacks(p), "switches off a default") != off {
			t.Errorf("off %v: %s (%s), %v", off, command, ServeLacks(p), err)
		}
	}
}
