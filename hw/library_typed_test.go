package hw

import (
	"testing"

	"github.com/sparseserve/sparseserve/hw/llm"
)

// Names as people type them mean built-in cards and models; ids of other checkpoints do not.
func TestNamesAsTyped(t *testing.T) {
	for typed, want := range map[string]string{"h100": "h100-80gb", "H100-80GB": "h100-80gb",
		"A100": "a100-80gb", "b200": "b200", "H200": "h200", "h20": "h20", "x.toml": "x.toml",
		"MI300X": "mi300x", "gh200": "gh200-96gb", "RTX 4090": "rtx-4090", "910B": "ascend-910b",
		"H100-SXM5-80GB": "h100-80gb", "NVIDIA H100 80GB HBM3": "h100-80gb", "h100sxm": "h100-80gb",
		"NVIDIA H100 PCIe": "h100-pcie", "NVIDIA A100 80GB PCIe": "a100-pcie",
		"A100_SXM4_40GB": "a100-40gb", "a100-40g": "a100-40gb", "NVIDIA GeForce RTX 4090": "rtx-4090",
		"NVIDIA RTX PRO 6000 Blackwell Server Edition": "rtx-pro-6000", "H200 SXM 141GB": "h200",
		"AMD Instinct MI300X OAM": "mi300x", "NVIDIA GH200 480GB": "gh200-96gb",
		"GH200 144G HBM3e": "gh200-144gb", "HGX B200": "b200", "A100-PCIE-40GB": "A100-PCIE-40GB",
		"H100 NVL": "H100 NVL", "H200 NVL": "H200 NVL", "RTX 6000": "RTX 6000", "h800": "h800",
		"./h100": "./h100", "": ""} {
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
