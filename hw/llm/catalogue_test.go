package llm

import (
	"math"
	"strconv"
	"testing"

	"github.com/sparseserve/sparseserve/hw/builtin"
)

// The catalogue's shapes give the published numbers of parameters, and each row is found by its
// name and by its id.
func TestCatalogue(t *testing.T) {
	rows := rowsOf("catalogue.csv", catalogueCSV)
	ids := map[string]string{}
	for i, m := range Catalogue() {
		row := rows[1+i]
		billions, err := strconv.ParseFloat(row[len(row)-1], 64)
		if err != nil {
			t.Fatalf("%s: %v", row[0], err)
		}
		if n := float64(m.Parameters()) / 1e9; math.Abs(n/billions-1) > 0.01 {
			t.Errorf("%s: %.4g billion parameters, published are %g", m.Name, n, billions)
		}
		for _, name := range row[:2] {
			if got, err := Load(name); err != nil || got.Name != m.Name {
				t.Errorf("%s: %s, %v, want %s", name, got.Name, err, m.Name)
			}
		}
		if other, ok := ids[builtin.Fold(row[1])]; ok {
			t.Errorf("%s and %s have one id, %s", m.Name, other, row[1])
		}
		ids[builtin.Fold(row[1])] = m.Name
	}
}

// The bytes of weights equal published checkpoints': total_size of model.safetensors.index.json,
// or the size on the model card (gpt-oss, Kimi-K2-Thinking). The bytes of KV per token equal table
// 1 of "Insights into DeepSeek-V3" (2025), or 2 x layers x KV heads x head size x 2.
func TestCatalogueAgainstPublishedSizes(t *testing.T) {
	for name, want := range map[string]float64{
		"llama2-7b": 13476831232, "llama3.1-8b": 16060522496, "llama3.1-70b": 141107412992,
		"qwen2.5-7b": 15231233024, "qwen2.5-32b": 65527752704, "qwen2.5-72b": 145412407296,
		"qwen3-32b": 65524246528, "qwen3-30b-a3b": 61064245248, "mixtral-8x7b": 93405585408,
		"mistral-7b-v0.3": 14496047104, "gemma2-9b": 18483411968, "gemma2-27b": 54454256640,
		"phi4": 29319014400, "gpt-oss-120b": 60.8 * (1 << 30), "gpt-oss-20b": 12.8 * (1 << 30),
		"kimi-k2-thinking": 594e9,
	} {
		m := mustModel(t, name)
		if got := float64(m.WeightBytes()); math.Abs(got/want-1) > 0.007 {
			t.Errorf("%s: %.6g bytes of weights, published are %.6g", name, got, want)
		}
	}
	for name, want := range map[string]int64{"llama3.3-70b": 327_680, "llama3.1-405b": 516_096,
		"qwen3-32b": 262_144, "qwen2.5-7b": 57_344, "qwen2.5-72b": 327_680, "phi4": 204_800,
		"mixtral-8x22b": 229_376, "deepseek-r1": 70_272, "gemma3-27b": 507_904,
		"mistral-nemo-12b": 163_840, "minimax-m2": 253_952, "seed-oss-36b": 262_144,
		"falcon3-10b": 163_840, "command-a": 262_144} {
		if got := mustModel(t, name).KVBytesPerToken(); got != want {
			t.Errorf("%s: %d bytes of KV per token, want %d", name, got, want)
		}
	}
}

// A model that people serve and the simulator cannot is refused by the field that changes the
// arithmetic, whatever the spelling of its id.
func TestRefusedModels(t *testing.T) {
	for _, row := range rowsOf("refused.csv", refusedCSV)[1:] {
		_, err := Load(row[0])
		wantError(t, row[0], err, row[0]+" is not modelled: "+row[1])
	}
	_, err := Load("qwen/qwen3-next-80b-a3b-instruct")
	wantError(t, "another spelling", err, "full_attention_interval")
}
