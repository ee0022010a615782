package sim

import (
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/sim/kv"
)

// listing is the state of one list while it is written.
type listing struct {
	row, to []int32
	slots   []uint32 // nil if the list has no slots
	n       int
	changed bool
}

// write writes the list of the i-th decode and group g, and reports whether it changed. With
// offloading, the cache writes the slots of blocks that it will load, and closeLists the slots of
// new open blocks. Other units may be written at the same time.
func (p *addressed) write(l *layerLists, i, g int, sel *kv.Selection) (changed bool) {
	r, heads := p.step.decodes[i], p.Geometry.KVHeads
	unit, blocks := i*heads+g%heads, p.Geometry.Blocks(r.Context())
	sel.At = unit * l.Stride
	if sel.All && l.all[unit] && int(l.Count[unit]) == blocks {
		return false
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
		if was := int(l.Count[unit]); p.ascending(l, sel) && was >= first &&
			max(was-first, sel.Used) < mostMerged {
			u.merge(sel, was)
		} else {
			u.choose(sel.Sinks, sel.Next[:sel.Used])
		}
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
	return u.changed
}

// ascending reports whether candidates are listed with slots and in ascending order.
func (p *addressed) ascending(l *layerLists, sel *kv.Selection) bool {
	return l.Slot != nil && !p.Spec.Progressive() && sel.Used == len(sel.Next)
}

// put writes blocks [from, to). A block that was already there keeps its slot.
func (u *listing) put(from, to int) {
	for block := from; block < to; block++ {
		if u.row[u.n] != int32(block) {
			u.row[u.n], u.changed = int32(block), true
			if u.slots != nil {
				u.to[u.n] = int32(u.slots[block])
			}
		}
		u.n++
	}
}

// choose writes the listed candidates. A separate loop without dependencies reads the slots of new
// blocks, so that CPU cache misses overlap.
func (u *listing) choose(sinks int, candidates []uint16) {
	var fresh [64]uint8
	for len(candidates) > 0 {
		part := candidates[:min(len(candidates), len(fresh))]
		row, k := u.row[u.n:][:len(part)], 0
		for j, c := range part {
			block := int32(sinks) + int32(c)
			fresh[k&63] = uint8(j)
			if row[j] != block {
				k++
			}
			row[j] = block
		}
		if u.slots != nil {
			to := u.to[u.n:][:len(row)]
			for _, j := range fresh[:k] {
				to[j] = int32(u.slots[row[j]])
			}
		}
		u.changed = u.changed || k > 0
		u.n += len(part)
		candidates = candidates[len(part):]
	}
}

// mostMerged is the largest number of candidates that merge accepts.
const mostMerged = 128

// merge is choose for candidates in ascending order over an ascending list of count entries.
// Remaining entries move with their slots. The cache writes the slots of new blocks in the
// selection's Added.
func (u *listing) merge(sel *kv.Selection, count int) {
	const mask = mostMerged - 1
	var blocks, slots [mostMerged]int32 // previous entries
	var fresh [mostMerged]uint16
	n := copy(blocks[:mask], u.row[u.n:count])
	copy(slots[:], u.to[u.n:count])
	blocks[n] = math.MaxInt32
	row, to := u.row[u.n:][:len(sel.Next)], u.to[u.n:][:len(sel.Next)]
	o, k := 0, 0
	for j, c := range sel.Next {
		block := int32(sel.Sinks) + int32(c)
		for blocks[o&mask] < block {
			o++
		}
		row[j] = block
		if blocks[o&mask] == block {
			to[j] = slots[o&mask]
			o++
			continue
		}
		fresh[k&mask] = uint16(j)
		k++
	}
	u.n += len(row)
	u.changed = u.changed || k > 0 // else blocks were only dropped, and the list is shorter
	if sel.Follows && slices.Equal(fresh[:k], sel.Added) {
		return
	}
	for _, j := range fresh[:k] {
		to[j] = int32(u.slots[row[j]])
	}
}
