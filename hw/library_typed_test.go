package hw

import (
	"testing"

	"github.com/sparseserve/sparseserve/hw/llm"
)

// Names as people type them mean built-in cards and models; ids of other checkpoints do not.
func TestNamesAsTyped(t *testing.T) {
	for typed, want := range map[string]string{"h100": "h100-80gb", "H100-80GB": "h100-80gb",
		"A100": "a100-80gb", "b200": "b200", "H200": "h200", "h20": "h20", "x.toml": "x.toml",
		"MI300X": "mi300x", "gh200": "gh200-96gb", "RTX 4090": "rtx-4090", "910B": "ascend-910b"} {
		if got := CardName(typed); got != want {
			t.Errorf("gpu %s: %s, want %s", typed, got, want)
		}
	}
	for typed, want := range map[string]string{"Qwen/Qwen3-14B": "qwen3-14b",
		"meta-llama/Llama-3.1-8B-Instruct": "llama3.1-8b", "Llama-3.1-8B": "llama3.1-8b",
		"mistralai/Mixtral-8x7B-Instruct-v0.1": "mixtral-8x7b", "zai-org/GLM-4.5-FP8": "glm-4.5",
		"zai-org/GLM-4.5": "glm-4.5-bf16", "zai-org/GLM-4": "zai-org/GLM-4",
		"Qwen/Qwen3-14B-FP8":   "qwen3-14b-fp8",
		"Qwen/Qwen3-235B-A22B": "qwen3-235b-a22b-bf16", "openai/gpt-oss-120b": "gpt-oss-120b",
		"Qwen/Qwen3-235B-A22B-FP8": "qwen3-235b-a22b", "qwen3-14b": "qwen3-14b", "nope": "nope"} {
		if got := llm.NameOf(typed); got != want {
			t.Errorf("model %s: %s, want %s", typed, got, want)
		}
	}
}
