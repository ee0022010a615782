package config

import (
	"strings"
	"testing"
)

// A model that does not fit is refused with the fewest GPUs of each card that hold it.
func TestWhatWouldFit(t *testing.T) {
	for model, want := range map[string]string{
		// 220.15 GiB of weights: 55 a GPU of 4, 28 of 8, 110 of 2
		"qwen3-235b-a22b": "these do (system.tensor_parallel x gpu): 4x a100-80gb, 8x a100-40gb, " +
			"4x a100-pcie, 4x ascend-910b, 4x ascend-910c, 2x b200, 1x b300, 2x gb200, 1x gb300, " +
			"2x gh200-144gb, 4x gh200-96gb, 4x h100-80gb, 4x h100-pcie, 4x h20, 2x h200, 8x l40s, " +
			"2x mi300x, 1x mi325x, 1x mi355x, 4x rtx-pro-6000",
		"deepseek-v3": "these do (system.tensor_parallel x gpu): 4x b200, 4x b300, 4x gb200, " +
			"4x gb300, 8x gh200-144gb, 8x gh200-96gb, 8x h20, 8x h200, 4x mi300x, 4x mi325x, 4x mi355x, " +
			"8x rtx-pro-6000",
	} {
		_, err := Load("", []string{"model=" + model, "gpu=a100-80gb", "workload.rate=1",
			"system.preset=vllm"})
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", model, err, want)
		}
	}
	p := mustLoad(t, "", "model=llama3.1-8b", "gpu=h100-80gb", "workload.rate=1")[0]
	// 244 GiB of KV and 15 of weights are 65 a GPU of 4
	const four = "4x h100-80gb"
	if text := WouldFit(p, 2_000_000); !strings.Contains(text, four) {
		t.Errorf("KV of two million tokens: %s", text)
	}
}
