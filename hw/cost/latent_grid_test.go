package cost

import (
	"math"
	"testing"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim"
)

// Attention over latents of models without an indexer has the times of a measured grid: decodes by
// requests, prompts by how many there are; what is before a chunk comes on top. No result has a
// warning of derived kernels.
func TestLatentsHaveMeasuredTimes(t *testing.T) {
	p, err := hw.Load("h200", "vllm-0.15", nil)
	if err != nil {
		t.Fatal(err)
	}
	m := mustModel(t, "deepseek-v3")
	rank, err := m.Shard(8)
	if err != nil {
		t.Fatal(err)
	}
	decode := newLatentDecode(p, &rank, p.DenseDecode)
	want := GridSeconds(p.GridOf(hw.GridLatent, rank.KVType()), hw.Sizes{64, 4096, 16})
	if got := decode.verify(64*4096, 64, 1); got != want {
		t.Errorf("64 decodes: %g s, the grid has %g", got, want)
	}
	if one := decode.verify(64*4096, 1, 1); one == want {
		t.Errorf("a decode of as many tokens takes as long as 64: %g s", one)
	}

	prefill := newLatentPrefill(p, &rank)
	chunk := sim.Span{Query: 2048}
	want = GridSeconds(p.GridOf(hw.GridLatentPrefill, rank.KVType()), hw.Sizes{2048, 4, 16})
	if got, _ := prefill.of([]sim.Span{chunk, chunk, chunk, chunk}); math.Abs(got/want-1) > 1e-9 {
		t.Errorf("4 prompts: %g s, the grid has %g", got, want)
	}
	alone, _ := prefill.of([]sim.Span{chunk})
	later, _ := prefill.of([]sim.Span{{Query: 2048, Prefix: 8192}})
	if flops := prefill.flops * 2048 * 8192 / p.GPU.PeakFP16.SI(); later < alone+flops {
		t.Errorf("after 8192 tokens: %g s, %g without them, and %g at the peak", later, alone, flops)
	}

	c := newClasses(p, &rank, new(newCoster(p, &rank, &DeviceOptions{})), &DeviceOptions{})[10]
	c.layer(&sim.Work{Tokens: 64, Decodes: 64, DecodeTokens: 64 * 4096})
	if c.notes.bits&(1<<noteLatent) != 0 {
		t.Error("a warning says that no kernel over latents was measured")
	}
}
