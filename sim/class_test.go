package sim_test

import (
	"context"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/hw/cost"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// index gives a model latents and an indexer.
func index(m *llm.Model) {
	m.KVHeads, m.HeadDim = 1, 24
	m.Latent = llm.Latent{KVRank: 32, RopeDim: 8, NopeDim: 16, ValueDim: 16, QRank: 32}
	m.Indexer = llm.Indexer{IndexTopK: 20, IndexHeads: 2, IndexHeadDim: 16, IndexKeyBytes: 20}
}

// window gives the model of a scenario a window in every second layer, and its system nothing that
// does not go with it.
func window(c *scenario, tokens int) {
	c.model.Window = llm.Window{WindowTokens: tokens, WindowPattern: "wf"[:min(2, c.model.Layers)]}
	if c.model.Layers == 1 { // a window in every layer
		c.spec.PrefixCache.Mode = sim.PrefixOff
		for i := range c.arrivals {
			c.arrivals[i].Content = nil
		}
	}
}

// Laws 1, 4 and 9 of a prefix cache with windows: blocks are conserved at every event, every token
// is computed or hit, and runs repeat.
func TestLawsOfPrefixesWithWindows(t *testing.T) {
	hits := 0
	rapid.Check(t, func(t *rapid.T) {
		c := drawWindows(t).vary(t)
		o := c.drive(t, func(o *outcome) error { return o.server.Check() })
		if left := o.server.Left(); left != (sim.Holdings{}) {
			t.Fatalf("left behind: %+v\n%v", left, c)
		}
		var asked int64
		for _, r := range o.requests {
			if hits += r.Hit; r.Rejected == "" {
				asked += int64(r.Prompt-r.Hit) * int64(c.model.Layers)
			}
		}
		if o.spy.query < asked {
			t.Fatalf("law 4: %d token-layers prefilled of %d\n%v", o.spy.query, asked, c)
		}
		if again := c.drive(t, nil); !reflect.DeepEqual(again.log, o.log) {
			t.Fatalf("law 9: two runs differ\n%v", c)
		}
	})
	if hits == 0 {
		t.Error("no request hits")
	}
}

// bounds holds the work of each layer against the contexts of the batch.
type bounds struct {
	*cost.Device
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

func (b *bounds) Next(s *sim.Step, w *sim.Work) (metrics.Timing, bool) {
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
