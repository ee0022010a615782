package hw

import (
	"testing"

	"github.com/sparseserve/sparseserve/hw/llm"
)

// A suggestion is of the same product, and a name of the hub is answered with what is wanted.
func TestSuggestionsAreOfTheSameProduct(t *testing.T) {
	_, err := LoadCard("b100")
	wantError(t, "b100", err, `unknown gpu "b100"; known: a100-40gb`, "or a card file of your own")
	for word, near := range map[string]string{"h800": "", "h201": "", "a100-40": "a100-40gb",
		"h100-80gp": "h100-80gb", "a100-40bg": "a100-40gb", "mi250x": ""} {
		_, err := LoadCard(word)
		if near == "" {
			near = `"; known:`
		} else {
			near = `did you mean "` + near
		}
		wantError(t, word, err, near)
	}
	_, err = llm.Load("lvm-7b")
	wantError(t, "lvm-7b", err, `did you mean "lwm-7b"`)
	_, err = llm.Load("Qwen/Qwen3-33B")
	wantError(t, "hub", err, "https://huggingface.co/Qwen/Qwen3-33B/resolve/main/config.json",
		"nearest in the catalogue are Qwen/Qwen3-3", "Qwen/Qwen3-32B")
	for name, near := range map[string]string{
		"Qwen3-32B-Instrct": "nearest Qwen/Qwen3-32B, Qwen/Qwen3-32B-FP8, Qwen/Qwen3-30B-A3B;",
		"llama-8b":          "nearest meta-llama/Llama-3.1-8B, gradientai/Llama-3-8B-Instruct-262k,",
		"gpt-oss-100b":      "nearest openai/gpt-oss-120b, openai/gpt-oss-20b,",
	} {
		_, err := llm.Load(name)
		wantError(t, name, err, near)
	}
	if llm.HubName("some/folder/model") || llm.HubName("own/config.json") ||
		!llm.HubName("Qwen/Qwen3-32B") {
		t.Error("HubName")
	}
}
