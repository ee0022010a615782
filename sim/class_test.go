package sim_test

import (
	"context"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/memory"
)

// index gives a model latents and an indexer.
func index(m *hw.Model) {
	m.KVHeads, m.HeadDim = 1, 24
	m.Latent = hw.Latent{KVRank: 32, RopeDim: 8, NopeDim: 16, ValueDim: 16, QRank: 32}
	m.Indexer = hw.Indexer{IndexTopK: 20, IndexHeads: 2, IndexHeadDim: 16, IndexKeyBytes: 20}
}

// window gives the model of a scenario a window in every second layer, and its system nothing that
// does not go with it.
func window(c *scenario, tokens int) {
	c.model.Window = hw.Window{WindowTokens: tokens, WindowPattern: "wf"[:min(2, c.model.Layers)]}
	c.spec.PrefixCache.Mode, c.spec.PrefixCache.DRAMGiB, c.spec.PrefixCache.SSDGiB = sim.PrefixOff, 0,
		0
	for i := range c.arrivals {
		c.arrivals[i].Content = nil
	}
}

// bounds holds the work of each layer against the contexts of the batch.
type bounds struct {
	*hw.Device
	t       *rapid.T
	bound   int
	checked int
}

func (b *bounds) Compute(layer int, w *sim.Work) error {
	b.check(w)
	return b.Device.Compute(layer, w)
}

func (b *bounds) Repeat(layer, n int, w *sim.Work) error {
	b.check(w)
	return b.Device.Repeat(layer, n, w)
}

func (b *bounds) Next(s *sim.Step, w *sim.Work) (sim.Timing, bool) {
	b.check(w)
	return b.Device.Next(s, w)
}

func (b *bounds) check(w *sim.Work) {
	if w.Decodes == 0 {
		return
	}
	b.checked++
	if w.BoundedTokens > w.DecodeTokens || w.BoundedTokens > int64(w.Decodes*b.bound) ||
		w.BoundedTokens < min(w.DecodeTokens, int64(b.bound)) ||
		w.DecodeTokens <= int64(b.bound) && w.BoundedTokens != w.DecodeTokens {
		b.t.Fatalf("%d decodes of %d tokens: %d bounded by %d", w.Decodes, w.DecodeTokens,
			w.BoundedTokens, b.bound)
	}
}

// What decodes attend to in bounded layers is their contexts, of each no more than the bound.
func TestBoundedTokens(t *testing.T) {
	checked := 0
	rapid.Check(t, func(t *rapid.T) {
		c := drawDense(t)
		if c.model.BoundTokens() == 0 {
			return
		}
		d := &bounds{Device: c.modelled(t, profile(t, c.gpu)), t: t, bound: c.model.BoundTokens()}
		if _, err := c.server(t, d).Run(context.Background(), c.workload(0), &log{}); err != nil {
			t.Fatal(err)
		}
		checked += d.checked
	})
	if checked == 0 {
		t.Error("nothing was bounded")
	}
}

// A budget with windows holds what each layer keeps: all blocks of a context, or the blocks of the
// window and the next one.
func TestWindowBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string, low, high int) int { return rapid.IntRange(low, high).Draw(t, name) }
		block, kept := draw("block", 1, 16), draw("kept", 1, 9)
		w := memory.Windows{Layers: int64(draw("windows", 1, 5)), Full: int64(draw("full", 0, 5)),
			Blocks: int64(kept)}
		total := int64(draw("total", 0, 2000))
		b := memory.NewWindowBudget(total, block, 0, w)
		tokens := draw("tokens", 1, 3000)
		var want int64
		for range w.Layers {
			want += int64(min(kept, (tokens+block-1)/block))
		}
		for range w.Full {
			want += int64((tokens + block - 1) / block)
		}
		if got := b.Fits(tokens); got != (want <= total) {
			t.Fatalf("%d tokens need %d blocks of %d: fits %v", tokens, want, total, got)
		}
		if most := b.Tokens(total); most < 1<<40 {
			if most > 0 && !b.Fits(int(most)) || b.Fits(int(most)+block) {
				t.Fatalf("%d blocks hold %d tokens, which fits %v, and %d more %v", total, most,
					b.Fits(int(most)), block, b.Fits(int(most)+block))
			}
		}
	})
}
