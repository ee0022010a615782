package cost

import (
	"testing"

	"github.com/sparseserve/sparseserve/hw"
)

// SGLang runs DeepSeek-R1's shared expert as one more of the routed experts, for every token, and
// without its two GEMMs. It keeps them in a model with an indexer, and vLLM always does.
func TestSharedExpertIsFused(t *testing.T) {
	for _, c := range []struct {
		engine, model string
		fused         bool
	}{{"sglang-0.5", "deepseek-r1", true}, {"sglang-0.5", "deepseek-v3.2", false},
		{"vllm-0.19", "deepseek-r1", false}} {
		p, err := hw.Load("h200", c.engine, nil)
		if err != nil {
			t.Fatal(err)
		}
		m := mustModel(t, c.model)
		var layer coster
		layer.setClass(p, m, layerClass{routed: true}, 64)
		gone := len(matricesOf(m, layerClass{routed: true})) - len(matricesOf(m, layer.class))
		apart := *layer.experts
		apart.fused = false
		with, _ := layer.experts.of(16)
		without, _ := apart.of(16)
		one := apart.one(16) + 16*apart.copied
		if want := without + one; c.fused && (gone != 2 || with != want) {
			t.Errorf("%s, %s: %d GEMMs are gone, 16 tokens take %g s, want 2 and %g", c.engine, c.model,
				gone, with, want)
		} else if !c.fused && (gone != 0 || with != without) {
			t.Errorf("%s, %s: %d GEMMs are gone, 16 tokens take %g s, want 0 and %g", c.engine, c.model,
				gone, with, without)
		}
	}
}
