package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is not modelled of a model is refused with file, line, key and value, and what makes it so.
func TestClassesAreRefused(t *testing.T) {
	for _, c := range []struct{ model, system, want string }{
		{"deepseek-v3.2", "preset = \"vllm-s\"\ntensor_parallel = 8",
			`selection.on = true: blocks are selected`},
		{"gpt-oss-20b", "preset = \"sparseserve\"", `selection.on = true: blocks are selected`},
		{"gpt-oss-20b", "preset = \"vllm-0.15\"\n[prefix_cache]\nmode = \"vllm\"", ""},
		{"gpt-oss-20b", "preset = \"vllm-0.15\"\n[prefix_cache]\nmode = \"radix\"", ""},
		{"gpt-oss-20b", "preset = \"vllm-0.15\"\n[prefix_cache]\nmode = \"vllm\"\nssd_gib = 9", ""},
		{"qwen3-30b-a3b", "preset = \"vllm-0.15\"\n[prefix_cache]\nmode = \"vllm\"\ndram_gib = 9", ""},
		{"qwen3-30b-a3b", "preset = \"vllm-0.15\"\n[prefix_cache]\nmode = \"vllm\"\ndram_gib = 9\n" +
			"load = \"cheaper\"", ""},
		{"gemma2-9b", "preset = \"vllm-0.15\"\n[prefill]\nattention = \"a-shape\"",
			`:6: prefill.attention = "a-shape": patterns need the keys`},
		{"mixtral-8x7b", "preset = \"vllm-0.15\"\ntensor_parallel = 2", ""},
		{"deepseek-v3", "preset = \"vllm-0.15\"\ntensor_parallel = 8\n[prefix_cache]\nmode = \"vllm\"",
			""},
		{"deepseek-v3", "preset = \"vllm-0.15\"\ntensor_parallel = 8\nexpert_parallel = 8", ""},
		{"mixtral-8x7b", "preset = \"vllm-0.15\"\ntensor_parallel = 2\nexpert_parallel = 4",
			`:6: system.expert_parallel = 4: want a divisor of the 2 GPUs`},
		{"llama3-8b", "preset = \"vllm-0.15\"\ntensor_parallel = 2\nexpert_parallel = 2",
			`:6: system.expert_parallel = 2: llama3-8b has no experts`},
		{"deepseek-v3", "preset = \"vllm-0.15\"", "deepseek-v3 does not fit h200"},
		{"deepseek-v3", "preset = \"vllm-0.15\"\ntensor_parallel = 8\n[speculation]\ntokens = 1", ""},
		{"mixtral-8x7b", "preset = \"vllm-0.15\"\ntensor_parallel = 2\n[speculation]\ntokens = 1",
			`:7: speculation.tokens = 1: mixtral-8x7b has no layers that draft`},
		{"deepseek-v3.2", "preset = \"vllm-0.15\"\ntensor_parallel = 8\n[speculation]\ntokens = 2",
			""},
	} {
		path := filepath.Join(t.TempDir(), "c.toml")
		text := "model = \"" + c.model + "\"\ngpu = \"h200\"\n[system]\n" + c.system +
			"\n[workload]\nrate = 1\n"
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := Load(path, nil)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s under %q: %v", c.model, c.system, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), c.model)):
			t.Errorf("%s under %q: %v, want %s", c.model, c.system, err, c.want)
		}
	}
}
