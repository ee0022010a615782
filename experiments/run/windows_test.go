package run

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/testkit"
)

// windowsAlone returns the config.json of a model, shaped as Mistral-7B-v0.1, whose layers all have
// windows.
func windowsAlone(t *testing.T) string {
	return testkit.Rewrite(t, filepath.Join(t.TempDir(), "config.json"), `{
		"model_type": "mistral", "architectures": ["MistralForCausalLM"], "hidden_size": 4096,
		"intermediate_size": 14336, "max_position_embeddings": 32768, "num_attention_heads": 32,
		"num_hidden_layers": 32, "num_key_value_heads": 8, "sliding_window": 1024,
		"torch_dtype": "bfloat16", "vocab_size": 32000}`)
}

// A model whose layers all have windows runs in each memory and with each prefix cache, and what is
// not modelled of it is refused by one line that names the key.
func TestWindowsInAllLayers(t *testing.T) {
	model := windowsAlone(t)
	for _, c := range []struct{ sets, refused string }{
		{"system.preset=vllm", ""},
		{"system.preset=vllm prefix_cache.mode=off", ""},
		{"system.preset=vllm prefix_cache.mode=off workload.prefix_hit=0.5", ""},
		{"system.preset=vllm system.kv_gib=0.6", ""},
		{"system.preset=vllm system.tensor_parallel=2", ""},
		{"system.preset=vllm-0.15 prefix_cache.mode=vllm", ""},
		{"system.preset=sglang", ""},
		{"system.preset=sglang prefix_cache.mode=vllm", ""},
		{"system.preset=vllm prefix_cache.mode=radix", ""},
		{"system.preset=vllm prefix_cache.mode=vllm prefix_cache.dram_gib=8", ""},
		{"system.preset=vllm prefix_cache.mode=radix prefix_cache.dram_gib=8", ""},
		{"system.preset=vllm prefix_cache.mode=vllm prefix_cache.ssd_gib=8", ""},
		{"system.preset=vllm prefix_cache.mode=off prefill.split=layer", ""},
		{"system.preset=vllm-s", "selection.on"},
		{"system.preset=sparseserve", "selection.on"},
		{"system.preset=sparseserve selection.on=false offload.eviction=lru", "offload.on"},
		{"system.preset=vllm-minference", "prefill.attention"},
		{"system.preset=hisparse", "selection.policy"},
	} {
		sets := append(strings.Fields(c.sets), "model="+model, "gpu=h100-80gb",
			"workload.trace=sessions", "workload.rate=4", "sessions.count=4")
		if strings.Contains(c.sets, "workload.prefix_hit") {
			sets = append(sets[:len(sets)-3], "workload.rate=2", "workload.requests=10")
		}
		points, err := config.Load("", sets)
		if c.refused != "" {
			var key *config.KeyError
			if !errors.As(err, &key) || key.Key != c.refused || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %v, want a line about %s", c.sets, err, c.refused)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.sets, err)
			continue
		}
		sum, err := NewSimulator().Run(t.Context(), points[0], Sink{})
		switch s := &points[0].System; {
		case err != nil || sum.Completed == 0:
			t.Errorf("%s: %v, %d requests completed", c.sets, err, sum.Completed)
		case s.CachesPrefixes() && sum.PrefixCache.HitTokens == 0:
			t.Errorf("%s: no hit", c.sets)
		}
	}
}
