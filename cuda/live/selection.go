package live

import (
	"fmt"
	"time"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/sim"
)

func (d *paged) beginSelection(s *sim.Step) {
	c, heads := &d.decodes, d.geo.KVHeads
	words, at := d.stage.Words(2 * c.n * heads)
	c.blocks, c.digests = at, at+cuda.Ptr(4*c.n*heads)
	for i := range c.n {
		for h := range heads {
			words[i*heads+h] = int32(d.geo.Blocks(s.Rows[i].To))
			words[(c.n+i)*heads+h] = int32(s.Rows[i].From / d.geo.BlockTokens)
		}
		if c.metaBase == 0 || d.of[i].meta.At < c.metaBase {
			c.metaBase = d.of[i].meta.At
		}
	}
	d.beginDigests()
	b := &d.scratch
	units := int64(c.n * heads)
	d.grow(&b.scores, units*int64(c.most)*4, "block scores")
	d.grow(&b.list, units*int64(d.budget)*4, "selected blocks")
	d.grow(&b.count, units*4, "selected blocks")
}

// beginDigests uploads the addresses of each unit's digests in every layer.
func (d *paged) beginDigests() {
	c, heads := &d.decodes, d.geo.KVHeads
	first, at := d.stage.Longs(d.geo.Groups() * c.n)
	c.first = at
	for layer := range d.geo.Layers {
		for i, r := range d.of[:c.n] {
			base := int64(r.meta.At-c.metaBase)/d.geo.MetaBytes + int64(layer*heads*r.metaBlocks)
			for h := range heads {
				first[(layer*c.n+i)*heads+h] = base + int64(h*r.metaBlocks)
			}
		}
	}
}

// score implements attention: the layer's decodes score the digests of their full blocks and select
// the budget's best. With offloading and lookup by the CPU, the selection is copied to the host,
// which waits for it and looks up the resident blocks.
func (d *paged) score(layer int, w *sim.Work) {
	l := w.Lists
	d.ready(layer)
	c, b, md, s, heads := &d.decodes, &d.scratch, d.model, d.cfg.Spec, d.geo.KVHeads
	units := c.n * heads
	d.growZeroed(&b.zeroed, int64(units)*4, "selection counters")
	d.launch(&cuda.SelectArgs{
		Scores: cuda.ScoresArgs{
			Q: b.q.At, Meta: c.metaBase, First: c.first + cuda.Ptr(8*layer*units),
			Count: c.digests, Scores: b.scores.At, Batch: int32(c.n), HeadsQ: int32(md.QHeads),
			HeadsKV: int32(heads), HeadDim: int32(md.HeadDim), ScoreStride: int32(c.most),
			MaxBlocks: int32(c.most),
		},
		TopK: cuda.TopKArgs{
			Blocks: c.blocks, List: b.list.At, Count: b.count.At, Units: int32(units),
			ScoreStride: int32(c.most), ListStride: int32(d.budget), K: int32(d.budget),
			Sink: int32(s.Selection.SinkBlocks), Window: int32(s.Selection.RecentBlocks),
		},
		Arrived: b.zeroed.At,
	})
	d.clock.mark(phaseScoring)
	asked := d.cfg.Selects && l != nil || d.cfg.Chosen != nil
	if (!d.offload || d.lookup.on) && !asked {
		return // attention, or the lookup, finds it on the GPU
	}
	if d.roundTrip(units) && asked {
		d.queue.Fail(d.choice(layer, l))
	}
}

// choice passes the selection to the server.
func (d *paged) choice(layer int, l *sim.Lists) error {
	list, heads := cuda.Slice[int32](d.selected), d.geo.KVHeads
	for i := range d.decodes.n {
		row := &d.rows[i]
		n := min(d.budget, d.geo.Blocks(row.To))
		for h := range heads {
			unit := i*heads + h
			blocks := list[unit*d.budget:][:n]
			if d.cfg.Chosen != nil {
				d.cfg.Chosen(row.ID, row.From, layer, h, blocks)
			}
			if d.cfg.Selects && l != nil {
				if n > l.Stride {
					return fmt.Errorf("%d blocks chosen, the server's lists hold %d", n, l.Stride)
				}
				l.Count[unit] = int32(n)
				copy(l.Block[unit*l.Stride:], blocks)
			}
		}
	}
	return nil
}

// roundTrip copies the layer's selection to the host, which uses it only if the model selects, and
// reports whether all went well.
func (d *paged) roundTrip(units int) bool {
	n := units * d.budget
	d.launch(&cuda.MemcpyArgs{Dst: d.selected.Ptr(), Src: d.scratch.list.At, Bytes: int64(4 * n)})
	d.counters.RoundTrips++
	_ = d.queue.Drain() // launching is not waiting
	defer d.waited(time.Now())
	return d.sync()
}
