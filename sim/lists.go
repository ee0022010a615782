package sim

import (
	"slices"
)

// Lists holds the blocks that each decode and KV head of one layer attends to; unit = row * KVHeads
// + head. The Block and Slot entries of a unit are [unit*Stride : unit*Stride+Count[unit]].
// Progressive attention reads them in this order: sinks, window, then candidates by descending
// criticality.
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
	// Unchanged reports that the lists equal the layer's previous lists and use the same memory.
	Unchanged bool
}

// ListMemory is a device that provides the memory of a layer's lists and reads them there. Buffer
// returns memory of the given number of 32-bit words, or nil. It may return the layer's previous
// buffer with its contents.
type ListMemory interface {
	Buffer(layer, words int) []int32
}

// ListBuffer returns list memory from the device, or nil if the device provides none.
func ListBuffer(d Device, layer, words int) []int32 {
	if l, ok := d.(ListMemory); ok {
		return l.Buffer(layer, words)
	}
	return nil
}

// layerLists holds one layer's lists. They are kept from step to step because few entries change.
// Block entries beyond a unit's list are -1. All other entries belong to the last step that listed
// the layer. An unchanged Block entry has an unchanged slot unless the layer's loads include the
// block, because blocks get slots only when they are loaded or created.
type layerLists struct {
	Lists
	layer   int
	words   []int32
	lent    bool // memory belongs to the device
	rows    []listedRow
	all     []bool // by unit: every block of the request is listed
	changed bool   // since the last step that listed the layer
}

// listedRow identifies the request whose lists a row holds.
type listedRow struct {
	id, preemptions int
	blocks          int // blocks of the request, including the open block at the end
}

// openLists prepares the list memory for the decodes of a layer. Rows that now belong to another
// request are cleared.
func (p *addressed) openLists(layer int, dense bool) *layerLists {
	for len(p.lists) < p.Model.Layers {
		p.lists = append(p.lists, &layerLists{layer: len(p.lists)})
	}
	l, heads := p.lists[layer], p.Geometry.KVHeads
	p.place(l, len(p.step.decodes)*heads, p.stride(layer, dense))
	l.Unchanged, l.changed = false, len(l.rows) != len(p.step.decodes)
	for i, r := range p.step.decodes {
		if i == len(l.rows) {
			l.rows = append(l.rows, listedRow{})
		} else if row := &l.rows[i]; row.id == r.ID && row.preemptions == r.record.Preemptions {
			continue
		}
		l.rows[i] = listedRow{id: r.ID, preemptions: r.record.Preemptions}
		l.changed = true
		for unit := i * heads; unit < (i+1)*heads; unit++ {
			l.truncate(unit, 0)
			l.all[unit] = false
		}
	}
	l.rows = l.rows[:len(p.step.decodes)]
	return l
}

// truncate cuts a list to at most n blocks, prefetched blocks included.
func (l *layerLists) truncate(unit, n int) {
	row := l.Block[unit*l.Stride:]
	for j := n; j < l.length(unit); j++ {
		row[j] = -1
	}
	l.Count[unit] = min(l.Count[unit], int32(n))
	if l.ListedAhead != nil {
		l.ListedAhead[unit] = min(l.ListedAhead[unit], int32(n))
	}
}

// length returns the number of blocks in a list, prefetched blocks included.
func (l *layerLists) length(unit int) int {
	if l.ListedAhead != nil {
		return int(l.ListedAhead[unit])
	}
	return int(l.Count[unit])
}

// stride returns the list stride that fits the layer's longest list.
func (p *addressed) stride(layer int, dense bool) int {
	most := 0
	for _, r := range p.step.decodes {
		n := p.Geometry.Blocks(r.Context())
		if !dense {
			n = min(n, p.most(r, layer)+p.Spec.Selection.SinkBlocks+p.Spec.Selection.RecentBlocks)
		}
		most = max(most, n)
	}
	return ListStride(most)
}

// most returns the largest number of candidates of any KV head in the layer. It includes prefetched
// blocks if the lists name them.
func (p *addressed) most(r *request, layer int) int {
	if p.sel.fixed {
		return Candidates(&p.Spec)
	}
	n := 0
	for h := range p.Geometry.KVHeads {
		p.sel.of(r, layer*p.Geometry.KVHeads+h, false, &p.scratch)
		if p.Spec.GPULookup() {
			n = max(n, len(p.scratch.Next))
		}
		n = max(n, p.scratch.Used)
	}
	return n
}

// ListWords returns the size of one layer's lists in 32-bit words.
func ListWords(spec *Spec, units, stride int) int {
	words := listPart(units) + listPart(units*stride)
	switch {
	case spec.GPULookup() && spec.Progressive():
		words += 3 * listPart(units)
	case spec.GPULookup():
		words += listPart(units)
	case spec.Offload.On:
		words *= 2
	}
	return words
}

// listPart aligns arrays to 256 bytes for the kernels that read them.
func listPart(words int) int { return (words + 63) / 64 * 64 }

// ListStride returns the stride for lists of at most n blocks. It rounds up so that lists do not
// move each time a context grows by a block.
func ListStride(n int) int { return (n + 15) / 16 * 16 }

// place assigns memory to a layer's lists. If memory or layout changed, the lists become empty.
func (p *addressed) place(l *layerLists, units, stride int) {
	if len(l.Count) == units && l.Stride > stride && l.Stride <= 2*stride {
		stride = l.Stride // keep the stride, because lists of varying length would move every few steps
	}
	words := ListWords(&p.Spec, units, stride)
	memory := ListBuffer(p.Device, l.layer, words)
	lent := memory != nil
	switch {
	case lent:
	case !l.lent && len(l.words) == words:
		memory = l.words
	default:
		memory = make([]int32, words)
	}
	if len(l.words) == words && &l.words[0] == &memory[0] && l.Stride == stride &&
		len(l.Count) == units {
		return
	}
	l.words, l.lent, l.Stride, l.rows = memory, lent, stride, l.rows[:0]
	next := func(n int) []int32 {
		x := memory[:n:n]
		memory = memory[listPart(n):]
		return x
	}
	l.Count, l.Block = next(units), next(units*stride)
	l.Slot, l.Open, l.ListedAhead, l.FirstRound = nil, nil, nil, nil
	if p.cache != nil {
		l.Open = next(units)
	}
	switch {
	case p.Spec.GPULookup() && p.Spec.Progressive():
		l.ListedAhead, l.FirstRound = next(units), next(units)
		clear(l.ListedAhead)
		clear(l.FirstRound)
	case p.cache != nil && !p.Spec.GPULookup():
		l.Slot = next(units * stride)
	}
	for i := range l.Block {
		l.Block[i] = -1
	}
	clear(l.Count)
	l.all = slices.Grow(l.all[:0], units)[:units]
	clear(l.all)
}

// listAll writes the lists of a layer without slots.
func (p *addressed) listAll(layer int, dense bool) {
	l, heads := p.openLists(layer, dense), p.Geometry.KVHeads
	for i, r := range p.step.decodes {
		for g := layer * heads; g < (layer+1)*heads; g++ {
			p.sel.of(r, g, dense, &p.scratch)
			p.write(l, i, g, &p.scratch)
		}
	}
	p.closeLists(l)
}

// closeLists adds the slots of blocks that start with this step's token and passes the lists to the
// device.
func (p *addressed) closeLists(l *layerLists) {
	l.changed = l.changed || l.Slot != nil && len(p.cache.Refs()) > 0
	if l.Open != nil {
		p.listOpen(l)
	}
	l.Unchanged = !l.changed
	p.step.work.Lists = &l.Lists
}

// listOpen writes the slots of open blocks that changed since the last step.
func (p *addressed) listOpen(l *layerLists) {
	heads := p.Geometry.KVHeads
	for i, r := range p.step.decodes {
		row, blocks := &l.rows[i], p.Geometry.Blocks(r.Context())
		if row.blocks == blocks {
			continue
		}
		row.blocks = blocks
		for h := range heads {
			unit := i*heads + h
			slot := int32(r.seq.Slots(l.layer*heads + h)[blocks-1])
			last := blocks
			if !l.all[unit] {
				last = p.Spec.Selection.SinkBlocks + p.Spec.Selection.RecentBlocks
			}
			if l.Open[unit] = slot; l.Slot != nil {
				l.Slot[unit*l.Stride+last-1] = slot
			}
		}
		l.changed = true
	}
}
