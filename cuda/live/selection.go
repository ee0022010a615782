package live

import (
	"fmt"
	"time"

	"sparseserve/cuda"
	"sparseserve/sim"
)

func (d *Device) beginSelection(s *sim.Step) error {
	c, heads := &d.decodes, d.geo.KVHeads
	words, at, err := d.stage.words(2 * c.n * heads)
	if err != nil {
		return err
	}
	c.blocks, c.digests = at, at+cuda.Ptr(4*c.n*heads)
	for i := range c.n {
		for h := range heads {
			words[i*heads+h] = int32(d.geo.Blocks(s.Rows[i].To))
			words[(c.n+i)*heads+h] = int32(s.Rows[i].From / d.geo.BlockTokens)
		}
		if c.metaBase == 0 || d.of[i].meta.at < c.metaBase {
			c.metaBase = d.of[i].meta.at
		}
	}
	if err := d.beginDigests(); err != nil {
		return err
	}
	b := &d.scratch
	units := int64(c.n * heads)
	if err := d.grow(&b.scores, units*int64(c.most)*4, "block scores"); err != nil {
		return err
	}
	if err := d.grow(&b.list, units*int64(d.budget)*4, "selected blocks"); err != nil {
		return err
	}
	return d.grow(&b.count, units*4, "selected blocks")
}

// digests is where those of a request lie, and how many each unit has room for.
type digests struct {
	at     cuda.Ptr
	blocks int
}

// beginDigests uploads where each unit's digests begin in every layer, if the requests are not those of the last upload.
func (d *Device) beginDigests() error {
	c, heads, b := &d.decodes, d.geo.KVHeads, &d.scratch
	same := len(d.digested) == c.n
	for i := 0; same && i < c.n; i++ {
		same = d.digested[i] == digests{d.of[i].meta.at, d.of[i].metaBlocks}
	}
	if same {
		return nil
	}
	n := d.geo.Groups() * c.n
	if err := d.grow(&b.first, int64(n)*8, "places of digests"); err != nil {
		return err
	}
	first, at, err := d.stage.note(n)
	if err != nil {
		return err
	}
	d.digested = d.digested[:0]
	for _, r := range d.of[:c.n] {
		d.digested = append(d.digested, digests{r.meta.at, r.metaBlocks})
	}
	for layer := range d.geo.Layers {
		for i := range c.n {
			r := d.of[i]
			base := int64(r.meta.at-c.metaBase)/d.geo.MetaBytes + int64(layer*heads*r.metaBlocks)
			for h := range heads {
				first[(layer*c.n+i)*heads+h] = base + int64(h*r.metaBlocks)
			}
		}
	}
	return d.stage.copyUp(b.first.at, at, int64(n)*8, d.stream)
}

// Score implements sim.Device: the layer's decodes rate the digests of their full blocks and choose the budget's best. With offloading what
// they choose goes to the host, which looks up what is resident, and the host waits for it; unless the GPU looks it up.
func (d *Device) Score(layer int, w *sim.Work) error {
	d.enter(&d.counters.Lookup)
	defer d.leave()
	d.queue.at(d.step.Index, layer)
	if err := d.score(layer, w.Lists); err != nil {
		return told(err, "step %d, layer %d, selection", d.step.Index, layer)
	}
	return nil
}

func (d *Device) score(layer int, l *sim.Lists) error {
	if err := d.ready(layer); err != nil {
		return err
	}
	c, b, md, heads := &d.decodes, &d.scratch, d.model, d.geo.KVHeads
	units := c.n * heads
	if err := d.growZeroed(&b.zeroed, int64(units)*4, "selection counters"); err != nil {
		return err
	}
	s := d.cfg.Spec
	err := d.m.Select(&cuda.SelectArgs{
		Scores: cuda.ScoresArgs{
			Q: b.q.at, Meta: c.metaBase, First: b.first.at + cuda.Ptr(8*layer*units), Count: c.digests, Scores: b.scores.at, Batch: int32(c.n), HeadsQ: int32(md.HeadsQ), HeadsKV: int32(heads),
			HeadDim: int32(md.HeadDim), ScoreStride: int32(c.most), MaxBlocks: int32(c.most),
		},
		TopK: cuda.TopKArgs{
			Blocks: c.blocks, List: b.list.at, Count: b.count.at, Units: int32(units), ScoreStride: int32(c.most), ListStride: int32(d.budget),
			K: int32(d.budget), Sink: int32(s.SinkBlocks), Window: int32(s.WindowBlocks),
		},
		Arrived: b.zeroed.at,
	}, d.stream)
	if err != nil {
		return err
	}
	if err := d.clock.mark(phaseScoring); err != nil {
		return err
	}
	asked := d.cfg.Selects && l != nil || d.cfg.Chosen != nil
	if (!d.offload || d.lookup.on) && !asked {
		return nil // attention, or the lookup, finds it on the GPU
	}
	if err := d.roundTrip(units); err != nil || !asked {
		return err
	}
	return d.choice(layer, l)
}

// choice tells the server what was chosen.
func (d *Device) choice(layer int, l *sim.Lists) error {
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

// roundTrip brings the layer's selection to the host. What it holds is used only when the model selects. A memcpy would wait in the copy engine's
// queue behind saves with a memcpy a block, some milliseconds in each layer; the kernel does not.
func (d *Device) roundTrip(units int) error {
	n := units * d.budget
	if err := d.hostList(n); err != nil {
		return err
	}
	if err := d.m.Carry(&cuda.MemcpyArgs{Dst: d.selected.Ptr(), Src: d.scratch.list.at, Bytes: int64(4 * n)}, d.stream); err != nil {
		return err
	}
	if err := d.queue.drain(); err != nil { // launching is not waiting
		return err
	}
	d.counters.RoundTrips++
	defer d.waited(time.Now())
	return d.m.StreamSync(d.stream)
}

// hostList makes room for a layer's selection in pinned memory.
func (d *Device) hostList(n int) error {
	if d.selectedWords >= n {
		return nil
	}
	if d.selectedWords > 0 {
		if err := d.m.HostFree(d.selected); err != nil {
			return err
		}
	}
	d.selectedWords = 0
	m, err := d.m.HostAlloc(int64(8*n), cuda.DriverPages)
	if err != nil {
		return err
	}
	d.selected, d.selectedWords = m, 2*n
	return nil
}
