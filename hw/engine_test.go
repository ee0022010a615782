package hw

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

// vLLM's default limits of a batch, as get_batch_defaults of its engine/arg_utils.py has them.
func TestBatchDefaultsByCardAndUse(t *testing.T) {
	for _, c := range []struct {
		engine, gpu, use string
		tokens, requests int
	}{
		{"vllm-0.15", "h100-80gb", "server", 8192, 1024},
		{"vllm-0.15", "h200", "offline", 16384, 1024},
		{"vllm-0.15", "a100-80gb", "server", 2048, 256},
		{"vllm-0.15", "a100-40gb", "offline", 8192, 256},
		{"vllm-0.19", "h100-80gb", "server", 8192, 1024},
		{"vllm-0.28", "h200", "server", 8192, 1024}, {"vllm-0.28", "b200", "server", 16384, 1024},
		{"vllm-0.28", "l40s", "server", 2048, 256}, {"vllm-0.28", "a100-80gb", "offline", 8192, 256},
		{"vllm-0.5", "h100-80gb", "offline", 2048, 256},
		{"sglang-0.5", "b200", "server", 16384, 2048}, {"sglang-0.5", "h200", "server", 8192, 2048},
		{"sglang-0.5", "l40s", "server", 4096, 2048}, {"sglang-0.5", "rtx-4090", "server", 2048, 2048},
	} {
		e, err := LoadEngine(c.engine)
		if err != nil {
			t.Fatal(err)
		}
		card, err := LoadCard(c.gpu)
		if err != nil {
			t.Fatal(err)
		}
		d := e.DefaultsOn(card, c.use)
		if d.MaxTokens != c.tokens || d.MaxRequests != c.requests || d.Prefill.ChunkTokens != c.tokens {
			t.Errorf("%+v: %d tokens in chunks of %d, %d requests", c, d.MaxTokens, d.Prefill.ChunkTokens,
				d.MaxRequests)
		}
	}
}

// SGLang's cuda_graph_max_bs and mem_fraction_static, as _handle_gpu_memory_settings of its
// server_args.py has them: with 42, 50, 58 and 74 piecewise graphs of prefills.
func TestGraphsByCard(t *testing.T) {
	e, err := LoadEngine("sglang-0.5")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		gpu               string
		one, four, tokens int
		share             float64 // mem_fraction_static of one GPU
	}{
		{"rtx-4090", 24, 80, 2048, 0.833}, {"l40s", 32, 160, 4096, 0.843},
		{"h100-80gb", 256, 512, 8192, 0.830}, {"b200", 512, 512, 16384, 0.854},
	} {
		card, err := LoadCard(c.gpu)
		if err != nil {
			t.Fatal(err)
		}
		one, four := e.Graphs.Of(1, &card.GPU), e.Graphs.Of(4, &card.GPU)
		share, ok := e.Utilisation(card, c.tokens, 1)
		if one.largest() != c.one || four.largest() != c.four || !ok || math.Abs(share-c.share) > 5e-4 {
			t.Errorf("%s: graphs to %d and %d, share %.3f; want %+v", c.gpu, one.largest(),
				four.largest(), share, c)
		}
	}
}

// An engine that starts from another has the other's keys except for its own.
func TestEngineFromAnother(t *testing.T) {
	base, err := LoadEngine("vllm-0.15")
	if err != nil {
		t.Fatal(err)
	}
	e, err := LoadEngine("vllm-0.19")
	if err != nil {
		t.Fatal(err)
	}
	if e.Host != base.Host || e.Kernels != base.Kernels ||
		len(e.Graphs.Tokens) != len(base.Graphs.Tokens) ||
		e.Defaults.PrefixCache.Mode != "vllm" || base.Defaults.Scheduler != "vllm-v1" ||
		e.Defaults.Scheduler != "vllm-v1-whole" {
		t.Errorf("%+v starts from %+v", e, base)
	}
	path := filepath.Join(t.TempDir(), "own.toml")
	for text, want := range map[string]string{
		"from = \"vllm-0.16\"": "unknown engine \"vllm-0.16\"",
		"from = \"vllm-0.19\"": "own.toml:2: from: want an engine that sets all keys itself",
		"from = \"vllm-0.5\"\n[[batch]]\nuse = \"shop\"\nmax_tokens = 1\nmax_requests = 1": "own." +
			"toml:4: batch[0].use: want one of server, offline",
	} {
		if err := os.WriteFile(path, []byte("name = \"own\"\n"+text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := LoadEngine(path)
		wantError(t, text, err, want)
	}
}
