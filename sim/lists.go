package sim

import (
	"math"
	"slices"
	"sync/atomic"
	"time"

	"sparseserve/sim/kv"
)

// Lists are the blocks that each decode and KV head of one layer attends to; unit = row *
// KVHeads + head. Its Block and Slot entries are [unit*Stride : unit*Stride+Count[unit]].
// Progressive attention goes through them in this order: sinks, window, then candidates from
// the most critical on.
type Lists struct {
	Stride int
	Count  []int32
	Block  []int32 // index in the request
	Slot   []int32 // HBM slot; nil without offloading, or where the device finds it
	Open   []int32 // slot of each unit's open block; nil without offloading
	// Named and First are for a device that finds the slots of progressive attention: blocks of
	// each list with those behind Count that are loaded ahead, and how many of the first ones
	// the first round needs wherever they stand.
	Named, First []int32
	// Kept says that the layer's lists are those of the step before that listed it, in the same
	// memory.
	Kept bool
}

// Lender is a device that lends the memory of a layer's lists, so that it reads them where they
// are written. Room returns the given number of words: the memory that it lent for the layer
// the last time, with what was written to it, or memory at another address, or nil for none.
type Lender interface {
	Room(layer, words int) []int32
}

// Room asks a device for memory of lists.
func Room(d Device, layer, words int) []int32 {
	if l, ok := d.(Lender); ok {
		return l.Room(layer, words)
	}
	return nil
}

// layerLists is one layer's lists, kept from step to step since little of them changes. An
// entry of Block beyond a unit's list is -1; all others are of the step in which the layer was
// last listed. An entry that is unchanged has an unchanged slot unless the layer's loads
// include it: blocks get slots only when loaded or created.
type layerLists struct {
	Lists
	words   []int32
	lent    bool // by the device
	rows    []listedRow
	all     []bool // by unit: every block of the request is listed
	changed atomic.Bool
}

// listedRow is whose lists lie in the units of a row.
type listedRow struct {
	id, preemptions int
	blocks          int // of the request; its open block is the last of these
}

// openLists makes room for what the decodes of a layer read.
func (s *Server) openLists(layer int, dense bool) {
	for len(s.detail.lists) < s.Model.Layers {
		s.detail.lists = append(s.detail.lists, new(layerLists))
	}
	l := s.detail.lists[layer]
	s.detail.layer = layer
	s.place(l, layer, len(s.step.decodes)*s.Geometry.KVHeads, s.stride(layer, dense))
	l.Kept = false
	l.changed.Store(len(l.rows) != len(s.step.decodes))
	heads := s.Geometry.KVHeads
	for i, r := range s.step.decodes {
		if i == len(l.rows) {
			l.rows = append(l.rows, listedRow{})
		} else if row := &l.rows[i]; row.id == r.ID && row.preemptions == r.preemptions {
			continue
		}
		l.rows[i] = listedRow{id: r.ID, preemptions: r.preemptions}
		l.changed.Store(true)
		for unit := i * heads; unit < (i+1)*heads; unit++ {
			l.forget(unit, 0)
			l.all[unit] = false
		}
	}
	l.rows = l.rows[:len(s.step.decodes)]
}

// forget makes a list at most n blocks long, with those that are only loaded.
func (l *layerLists) forget(unit, n int) {
	row := l.Block[unit*l.Stride:]
	for j := n; j < l.named(unit); j++ {
		row[j] = -1
	}
	l.Count[unit] = min(l.Count[unit], int32(n))
	if l.Named != nil {
		l.Named[unit] = min(l.Named[unit], int32(n))
	}
}

// named is how many blocks a list has, with those that are only loaded.
func (l *layerLists) named(unit int) int {
	if l.Named != nil {
		return int(l.Named[unit])
	}
	return int(l.Count[unit])
}

// stride is that of a layer's longest list.
func (s *Server) stride(layer int, dense bool) int {
	most := 0
	for _, r := range s.step.decodes {
		n := s.Geometry.Blocks(r.Context())
		if !dense {
			n = min(n, s.most(r, layer)+s.Spec.SinkBlocks+s.Spec.WindowBlocks)
		}
		most = max(most, n)
	}
	return ListStride(most)
}

// ListWords is the room that the lists of one layer take.
func ListWords(spec *Spec, units, stride int) int {
	words := listPart(units) + listPart(units*stride)
	switch {
	case spec.GPULookup() && spec.Progressive():
		words += 3 * listPart(units)
	case spec.GPULookup():
		words += listPart(units)
	case spec.Offload:
		words *= 2
	}
	return words
}

// listPart makes the next array begin where kernels read it best.
func listPart(words int) int { return (words + 63) / 64 * 64 }

// ListStride is the stride of lists of at most n blocks: rounded up, so that they need not move
// with each block that a context grows by.
func ListStride(n int) int { return (n + 15) / 16 * 16 }

// place gives a layer's lists their memory. Where it is not what they had, they are empty.
func (s *Server) place(l *layerLists, layer, units, stride int) {
	if len(l.Count) == units && l.Stride > stride && l.Stride <= 2*stride {
		stride = l.Stride // lists of any length would move at every other step
	}
	words := ListWords(&s.Spec, units, stride)
	memory := Room(s.Device, layer, words)
	lent := memory != nil
	switch {
	case lent:
	case !l.lent && len(l.words) == words:
		memory = l.words
	default:
		memory = make([]int32, words)
	}
	if len(l.words) == words && &l.words[0] == &memory[0] && l.Stride == stride && len(l.Count) == units {
		return
	}
	l.words, l.lent, l.Stride, l.rows = memory, lent, stride, l.rows[:0]
	take := func(n int) []int32 {
		x := memory[:n:n]
		memory = memory[listPart(n):]
		return x
	}
	l.Count, l.Block = take(units), take(units*stride)
	l.Slot, l.Open, l.Named, l.First = nil, nil, nil, nil
	if s.cache != nil {
		l.Open = take(units)
	}
	switch {
	case s.Spec.GPULookup() && s.Spec.Progressive():
		l.Named, l.First = take(units), take(units)
		clear(l.Named)
		clear(l.First)
	case s.cache != nil && !s.Spec.GPULookup():
		l.Slot = take(units * stride)
	}
	for i := range l.Block {
		l.Block[i] = -1
	}
	clear(l.Count)
	if cap(l.all) < units {
		l.all = make([]bool, units)
	}
	l.all = l.all[:units]
	clear(l.all)
}

// listTime is what writing one list takes, about.
const listTime = 300 * time.Nanosecond

// listing is one list as it is written.
type listing struct {
	row, to []int32
	slots   []uint32 // nil where the list has none
	n       int
	changed bool
}

// put writes the next block. One that was there before keeps its slot.
func (u *listing) put(block int) {
	if u.row[u.n] != int32(block) {
		u.row[u.n], u.changed = int32(block), true
		if u.slots != nil {
			u.to[u.n] = int32(u.slots[block])
		}
	}
	u.n++
}

// choose writes the listed candidates. It finds the slots of those that are new in a loop of
// its own: they lie anywhere in memory, and loads that wait for nothing else are under way
// together.
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

// mostMerged is more than the longest list of candidates that merge takes.
const mostMerged = 128

// merge is choose where candidates are ascending and so are those that the row has, up to
// count: what stays takes its slot along. Where the new ones are those that the selection says
// are added, the cache is about to write their slots.
func (u *listing) merge(sel *kv.Selection, count int) {
	const mask = mostMerged - 1
	var blocks, slots [mostMerged]int32 // that were there
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
	u.changed = u.changed || k > 0 // else one was dropped, and the list is shorter
	if sel.Follows && slices.Equal(fresh[:k], sel.Added) {
		return
	}
	for _, j := range fresh[:k] {
		to[j] = int32(u.slots[row[j]])
	}
}

// listUnit writes one list. With offloading, the slots of blocks that the layer is about to
// load or to begin follow in closeLists. Other units may be written at the same time.
func (s *Server) listUnit(i, g int, sel *kv.Selection) {
	l, r, heads := s.detail.lists[s.detail.layer], s.step.decodes[i], s.Geometry.KVHeads
	unit, blocks := i*heads+g%heads, s.Geometry.Blocks(r.Context())
	sel.At = unit * l.Stride
	if sel.All && l.all[unit] && int(l.Count[unit]) == blocks {
		return
	}
	u := listing{row: l.Block[unit*l.Stride:][:l.Stride]}
	if l.Slot != nil {
		u.to, u.slots = l.Slot[unit*l.Stride:][:l.Stride], r.seq.Slots(g)
	}
	first := -1 // blocks that the first round needs: all
	if l.all[unit] = sel.All; sel.All {
		for b := range blocks {
			u.put(b)
		}
	} else {
		for b := range sel.Sinks {
			u.put(b)
		}
		for b := sel.Tail; b < blocks; b++ {
			u.put(b)
		}
		first = u.n
		if was := int(l.Count[unit]); l.Slot != nil && !s.Spec.Progressive() && sel.Used == len(sel.Next) && was >= first && max(was-first, sel.Used) < mostMerged {
			u.merge(sel, was)
		} else {
			u.choose(sel.Sinks, sel.Next[:sel.Used])
		}
	}
	count := u.n
	if l.Named != nil {
		if !sel.All {
			u.choose(sel.Sinks, sel.Next[sel.Used:])
		}
		if first < 0 {
			first = u.n
		}
		if int(l.Named[unit]) != u.n || int(l.First[unit]) != first {
			l.forget(unit, u.n)
			l.Named[unit], l.First[unit], u.changed = int32(u.n), int32(first), true
		}
	}
	if int(l.Count[unit]) != count {
		if l.Named == nil {
			l.forget(unit, count)
		}
		l.Count[unit], u.changed = int32(count), true
	}
	if u.changed && !l.changed.Load() {
		l.changed.Store(true)
	}
}

// list writes the lists of a layer whose blocks need no slots.
func (s *Server) list(layer int, dense bool) {
	s.openLists(layer, dense)
	heads := s.Geometry.KVHeads
	kv.SideBySide(len(s.step.decodes), time.Duration(heads)*listTime, func(i int) {
		var sel kv.Selection
		for g := layer * heads; g < (layer+1)*heads; g++ {
			s.selection(s.step.decodes[i], g, dense, &sel)
			s.listUnit(i, g, &sel)
		}
	})
	s.closeLists()
}

// closeLists adds the slots of blocks that begin with this step's token, and hands the lists to
// the device.
func (s *Server) closeLists() {
	l := s.detail.lists[s.detail.layer]
	if l.Slot != nil && len(s.cache.Refs()) > 0 {
		l.changed.Store(true)
	}
	if l.Open != nil {
		s.listOpen(l)
	}
	l.Kept = !l.changed.Load()
	s.step.work.Lists = &l.Lists
}

// listOpen writes the slots of open blocks that are not those of the step before.
func (s *Server) listOpen(l *layerLists) {
	heads := s.Geometry.KVHeads
	for i, r := range s.step.decodes {
		row, blocks := &l.rows[i], s.Geometry.Blocks(r.Context())
		if row.blocks == blocks {
			continue
		}
		row.blocks = blocks
		for h := range heads {
			unit := i*heads + h
			slot := int32(r.seq.Slots(s.detail.layer*heads + h)[blocks-1])
			last := blocks
			if !l.all[unit] {
				last = s.Spec.SinkBlocks + s.Spec.WindowBlocks
			}
			if l.Open[unit] = slot; l.Slot != nil {
				l.Slot[unit*l.Stride+last-1] = slot
			}
		}
		l.changed.Store(true)
	}
}
