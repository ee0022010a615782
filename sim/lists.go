package sim

import (
	"slices"

	"github.com/sparseserve/sparseserve/sim/kv"
)

// Lists holds the blocks that each decode and KV head of one layer attends to; unit = row * KVHeads
// + head. The Block and Slot entries of a unit are [unit*Stride : unit*Stride+Count[unit]].
// Progressive attention reads them in this order: sinks, window, then candidates by descending
// criticality. They are valid until Compute of their layer returns.
type Lists struct {
	Stride int
	Count  []int32
	Block  []int32 // index in the request
	Slot   []int32 // HBM slot; nil without offloading or with lookup on the device
	Open   []int32 // slot of each unit's open block; nil without offloading
	// ListedAhead and FirstRound are set for progressive attention with lookup on the device.
	// ListedAhead is the length of each list including prefetched blocks, which follow the first
	// Count entries. FirstRound is the number of blocks that the first round needs.
	ListedAhead, FirstRound []int32
}

// ListStride returns the stride for lists of at most n blocks: a multiple of 64 bytes.
func ListStride(n int) int { return (n + 15) / 16 * 16 }

// openLists sizes the lists of a layer's decodes.
func (p *addressed) openLists(layer int, dense bool) *Lists {
	l, units := &p.lists, len(p.st.decodes)*p.cfg.Geometry.KVHeads
	l.Stride = p.stride(layer, dense)
	l.Count, l.Block = grow(l.Count, units), grow(l.Block, units*l.Stride)
	if p.cfg.Spec.GPULookup() && p.cfg.Spec.Progressive() {
		l.ListedAhead, l.FirstRound = grow(l.ListedAhead, units), grow(l.FirstRound, units)
	}
	return l
}

// stride returns the list stride that fits the layer's longest list.
func (p *addressed) stride(layer int, dense bool) int {
	most := 0
	for _, r := range p.st.decodes {
		n := p.cfg.Geometry.Blocks(r.Context())
		if !dense {
			n = min(n, p.most(r, layer)+p.cfg.Spec.Selection.SinkBlocks+p.cfg.Spec.Selection.RecentBlocks)
		}
		most = max(most, n)
	}
	return ListStride(most)
}

// most returns the largest number of candidates of any KV head in the layer. It includes prefetched
// blocks if the lists name them.
func (p *addressed) most(r *request, layer int) int {
	if p.sel.fixed {
		return Candidates(&p.cfg.Spec)
	}
	n := 0
	for h := range p.cfg.Geometry.KVHeads {
		p.sel.of(r, layer*p.cfg.Geometry.KVHeads+h, false, &p.scratch)
		if p.cfg.Spec.GPULookup() {
			n = max(n, len(p.scratch.Next))
		}
		n = max(n, p.scratch.Used)
	}
	return n
}

// write writes the blocks of the i-th decode's list in group g.
func (p *addressed) write(l *Lists, i, g int, sel *kv.Selection) {
	heads, blocks := p.cfg.Geometry.KVHeads, p.cfg.Geometry.Blocks(p.st.decodes[i].Context())
	unit := i*heads + g%heads
	row, n := l.Block[unit*l.Stride:][:l.Stride], 0
	put := func(from, to int) {
		for ; from < to; from++ {
			row[n] = int32(from)
			n++
		}
	}
	first := blocks // the first round needs all blocks
	if sel.All {
		put(0, blocks)
	} else {
		put(0, sel.Sinks)
		put(sel.Tail, blocks)
		first = n
		for _, c := range sel.Next[:sel.Used] {
			put(sel.Sinks+int(c), sel.Sinks+int(c)+1)
		}
	}
	l.Count[unit] = int32(n)
	if l.ListedAhead == nil {
		return
	}
	if !sel.All {
		for _, c := range sel.Next[sel.Used:] {
			put(sel.Sinks+int(c), sel.Sinks+int(c)+1)
		}
	}
	l.ListedAhead[unit], l.FirstRound[unit] = int32(n), int32(first)
}

// listAll writes the lists of a layer that the cache has no slots of.
func (p *addressed) listAll(layer int, dense bool) {
	l, heads := p.openLists(layer, dense), p.cfg.Geometry.KVHeads
	for i, r := range p.st.decodes {
		for g := layer * heads; g < (layer+1)*heads; g++ {
			p.sel.of(r, g, dense, &p.scratch)
			p.write(l, i, g, &p.scratch)
		}
	}
	p.st.work.Lists = l
}

// listSlots adds the slots of a layer's listed and open blocks, after Fill.
func (p *addressed) listSlots(l *Lists, layer int) {
	heads := p.cfg.Geometry.KVHeads
	l.Open = grow(l.Open, len(l.Count))
	if !p.cfg.Spec.GPULookup() {
		l.Slot = grow(l.Slot, len(l.Block))
	}
	for i, r := range p.st.decodes {
		for h := range heads {
			unit, slots := i*heads+h, r.seq.Slots(layer*heads+h)
			l.Open[unit] = int32(slots[p.cfg.Geometry.Blocks(r.Context())-1])
			if l.Slot == nil {
				continue
			}
			row := l.Slot[unit*l.Stride:]
			for j, block := range l.Block[unit*l.Stride:][:l.Count[unit]] {
				row[j] = int32(slots[block])
			}
		}
	}
}

func grow(x []int32, n int) []int32 { return slices.Grow(x[:0], n)[:n] }
