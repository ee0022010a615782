package cost

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
)

func draftCard(t *testing.T) *hw.Profile {
	t.Helper()
	p, err := hw.Load("h200", "vllm-0.15", nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func draftModel(t *testing.T) *llm.Model {
	t.Helper()
	m, err := llm.Load("llama3-8b")
	if err != nil {
		t.Fatal(err)
	}
	return &m
}

// DeepSeek-V3's MTP module has 11.5 billion weights beyond the embedding and head that it shares
// (README_WEIGHTS.md of the model); these are 11.61, of which the projection is 0.10.
func TestPublishedMTPWeights(t *testing.T) {
	m := mustModel(t, "deepseek-v3")
	m.WeightBytesEach, m.ExpertBytesEach = 2, 0
	if got := float64(m.MTPWeightBytes()) / 2 / 1e9; got < 11.5*0.985 || got > 11.5*1.015 {
		t.Errorf("%.4g billion weights, published 11.5", got)
	}
	before := m.KVBytesPerToken()
	if m.Drafts = true; m.KVBytesPerToken() != before/61*62 || m.Geometry(64).Layers != 62 {
		t.Errorf("%d bytes of KV a token with drafts, %d without", m.KVBytesPerToken(), before)
	}
}

// Queries of a request that read its KV together cost at least one of them, and at most as much as
// each by itself.
func TestVerifyReadsKVOnce(t *testing.T) {
	p := draftCard(t)
	plain, latent := newDense(p, draftModel(t)), newLatentDecode(p,
		mustModel(t, "deepseek-v3"), p.DenseDecode)
	rapid.Check(t, func(t *rapid.T) {
		n := float64(rapid.IntRange(1, 1<<22).Draw(t, "tokens"))
		requests := float64(rapid.IntRange(1, 256).Draw(t, "requests"))
		queries := float64(rapid.IntRange(1, 17).Draw(t, "queries"))
		one := plain.of(n, requests)
		all := plain.verify(n, 0, requests, queries)
		if all < one || all > queries*one*(1+1e-9) {
			t.Fatalf("one query %g s, %g of them %g s", one, queries, all)
		}
		one = latent.verify(n, requests, 1)
		all = latent.verify(n, requests, queries)
		if all < one || all > queries*one*(1+1e-9) {
			t.Fatalf("latents: one query %g s, %g of them %g s", one, queries, all)
		}
	})
}

// A pass that drafts costs at least the bytes of its projection, over what HBM gives, more than one
// layer of the step.
func TestDraftCostsALayerAndAProjection(t *testing.T) {
	p, m := draftCard(t), draftModel(t)
	w := sim.Work{Tokens: 8, Decodes: 8, DecodeTokens: 8000}
	step := func(drafts int) float64 {
		d, err := NewDevice(p, m, DeviceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Begin(&sim.Step{Requests: 8, Sampled: 8}); err != nil {
			t.Fatal(err)
		}
		for layer := range 2 {
			if err := d.Compute(layer, &w); err != nil {
				t.Fatal(err)
			}
		}
		for range drafts {
			if err := d.Draft(&w, 8); err != nil {
				t.Fatal(err)
			}
		}
		timing, err := d.Finish()
		if err != nil {
			t.Fatal(err)
		}
		return timing.Elapsed.Seconds()
	}
	none, one, two := step(0), step(1), step(2)
	least := float64(2*m.ProjectionLinears()+m.LayerWeightBytes()+int64(m.Vocab*m.Hidden)*2) /
		p.GPU.HBMBandwidth.SI()
	if one-none < least {
		t.Errorf("a pass takes %g s, its bytes %g s", one-none, least)
	}
	if off := (two - one) / (one - none); off < 0.999 || off > 1.001 {
		t.Errorf("the second pass takes %g of the first", off)
	}
	if err := new(Device).Draft(&w, 8); err == nil {
		t.Error("drafts outside a step")
	}
}
