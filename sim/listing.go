package sim

import "github.com/sparseserve/sparseserve/sim/kv"

// listing is the state of one list while it is written.
type listing struct {
	row, to []int32
	slots   []uint32 // nil if the list has no slots
	n       int
	changed bool
}

// write writes the list of the i-th decode and group g. With offloading, the cache writes the slots
// of blocks that it will load, and closeLists the slots of new open blocks.
func (p *addressed) write(l *layerLists, i, g int, sel *kv.Selection) {
	r, heads := p.step.decodes[i], p.Geometry.KVHeads
	unit, blocks := i*heads+g%heads, p.Geometry.Blocks(r.Context())
	sel.At = unit * l.Stride
	if sel.All && l.all[unit] && int(l.Count[unit]) == blocks {
		return
	}
	u := listing{row: l.Block[unit*l.Stride:][:l.Stride]}
	if l.Slot != nil {
		u.to, u.slots = l.Slot[unit*l.Stride:][:l.Stride], r.seq.Slots(g)
	}
	first := -1 // -1: the first round needs all blocks
	if l.all[unit] = sel.All; sel.All {
		u.put(0, blocks)
	} else {
		u.put(0, sel.Sinks)
		u.put(sel.Tail, blocks)
		first = u.n
		u.choose(sel.Sinks, sel.Next[:sel.Used])
	}
	count := u.n
	if l.ListedAhead != nil {
		if !sel.All {
			u.choose(sel.Sinks, sel.Next[sel.Used:])
		}
		if first < 0 {
			first = u.n
		}
		if int(l.ListedAhead[unit]) != u.n || int(l.FirstRound[unit]) != first {
			l.truncate(unit, u.n)
			l.ListedAhead[unit], l.FirstRound[unit], u.changed = int32(u.n), int32(first), true
		}
	}
	if int(l.Count[unit]) != count {
		if l.ListedAhead == nil {
			l.truncate(unit, count)
		}
		l.Count[unit], u.changed = int32(count), true
	}
	l.changed = l.changed || u.changed
}

// put adds blocks [from, to).
func (u *listing) put(from, to int) {
	for block := from; block < to; block++ {
		u.add(block)
	}
}

// choose adds candidates.
func (u *listing) choose(sinks int, candidates []uint16) {
	for _, c := range candidates {
		u.add(sinks + int(c))
	}
}

func (u *listing) add(block int) {
	u.changed = u.changed || u.row[u.n] != int32(block)
	u.row[u.n] = int32(block)
	if u.slots != nil {
		slot := int32(u.slots[block])
		u.changed = u.changed || u.to[u.n] != slot
		u.to[u.n] = slot
	}
	u.n++
}
