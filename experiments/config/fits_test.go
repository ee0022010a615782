package config

import (
	"strings"
	"testing"
)

// A model that does not fit is refused with the fewest GPUs of each card that hold it.
func TestWhatWouldFit(t *testing.T) {
	for model, want := range map[string]string{
		// 220.15 GiB of weights: 55 a GPU of 4, 28 of 8, 110 of 2
		"qwen3-235b-a22b": `; these do: gpu = "a100-80gb" with system.tensor_parallel = 4, ` +
			`gpu = "a100-40gb" with system.tensor_parallel = 8, gpu = "h100-80gb" with ` +
			`system.tensor_parallel = 4, gpu = "h200" with system.tensor_parallel = 2`,
		"deepseek-v3": `; these do: gpu = "h200" with system.tensor_parallel = 8`,
	} {
		_, err := Load("", []string{"model=" + model, "gpu=a100-80gb", "workload.rate=1",
			"system.preset=vllm"})
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", model, err, want)
		}
	}
	p := mustLoad(t, "", "model=llama3.1-8b", "gpu=h100-80gb", "workload.rate=1").Points()[0]
	// 244 GiB of KV and 15 of weights are 65 a GPU of 4
	const four = `"h100-80gb" with system.tensor_parallel = 4`
	if text := WouldFit(p, 2_000_000); !strings.Contains(text, four) {
		t.Errorf("KV of two million tokens: %s", text)
	}
}
