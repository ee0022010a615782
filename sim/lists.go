package sim

import (
	"slices"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/kv"
)

// Lists are the blocks that each decode and KV head of one layer attends to; unit = row *
// KVHeads + head. Its Block and Slot entries are [unit*Stride : unit*Stride+Count[unit]].
// Progressive attention reads them in this order: sinks, window, then candidates from the most
// critical on.
type Lists struct {
	Stride int
	Count  []int32
	Block  []int32 // index in the request
	Slot   []int32 // HBM slot; nil without offloading, or where the device finds it
	Open   []int32 // slot of each unit's open block; nil without offloading
	// Where the device finds the slots of progressive attention: the length of each list with
	// the blocks loaded ahead, which follow Count, and how many blocks the first round needs.
	ListedAhead, FirstRound []int32
	// Unchanged says that the layer's lists are those of the last step that listed it, in the
	// same memory.
	Unchanged bool
}

// ListMemory is a device that lends the memory of a layer's lists and reads them there. Buffer
// returns so many words: those that it lent for the layer the last time, with their contents,
// or others, or nil for none.
type ListMemory interface {
	Buffer(layer, words int) []int32
}

// ListBuffer asks a device for memory of lists.
func ListBuffer(d Device, layer, words int) []int32 {
	if l, ok := d.(ListMemory); ok {
		return l.Buffer(layer, words)
	}
	return nil
}

// layerLists is one layer's lists, kept from step to step since little of them changes. An
// entry of Block beyond a unit's list is -1; all others are of the step in which the layer was
// last listed. An entry that is unchanged has an unchanged slot unless the layer's loads
// include it: blocks get slots only when loaded or created.
type layerLists struct {
	Lists
	layer   int
	words   []int32
	lent    bool // by the device
	rows    []listedRow
	all     []bool // by unit: every block of the request is listed
	changed bool   // since the last step that listed the layer
	changes []bool // the same by part, while parts are written
}

// listedRow is whose lists a row has.
type listedRow struct {
	id, preemptions int
	blocks          int // of the request; its open block is the last of these
}

// openLists makes room for what the decodes of a layer read.
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
		} else if row := &l.rows[i]; row.id == r.ID && row.preemptions == r.preemptions {
			continue
		}
		l.rows[i] = listedRow{id: r.ID, preemptions: r.preemptions}
		l.changed = true
		for unit := i * heads; unit < (i+1)*heads; unit++ {
			l.truncate(unit, 0)
			l.all[unit] = false
		}
	}
	l.rows = l.rows[:len(p.step.decodes)]
	return l
}

// changedBy prepares for lists written in so many parts, each of which sets its entry of
// changes.
func (l *layerLists) changedBy(parts int) {
	l.changes = slices.Grow(l.changes[:0], parts)[:parts]
}

// truncate makes a list at most n blocks long, with those that are only loaded.
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

// length is how many blocks a list has, with those that are only loaded.
func (l *layerLists) length(unit int) int {
	if l.ListedAhead != nil {
		return int(l.ListedAhead[unit])
	}
	return int(l.Count[unit])
}

// stride is that of a layer's longest list.
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

// most is the most candidates that a head of a layer attends to, or has loaded where its lists
// name those too.
func (p *addressed) most(r *request, layer int) int {
	if p.fixed {
		return Candidates(&p.Spec)
	}
	n := 0
	for h := range p.Geometry.KVHeads {
		p.selection(r, layer*p.Geometry.KVHeads+h, false, &p.sel)
		if p.Spec.GPULookup() {
			n = max(n, len(p.sel.Next))
		}
		n = max(n, p.sel.Used)
	}
	return n
}

// ListWords is the memory of one layer's lists in words.
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

// ListStride is the stride of lists of at most n blocks, rounded up so that lists need not move
// with each block that a context grows by.
func ListStride(n int) int { return (n + 15) / 16 * 16 }

// place gives a layer's lists their memory. Where it is not what they had, they are empty.
func (p *addressed) place(l *layerLists, units, stride int) {
	if len(l.Count) == units && l.Stride > stride && l.Stride <= 2*stride {
		stride = l.Stride // or lists of varying length would move at every other step
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

// listTime is roughly what writing one list costs.
const listTime = 300 * des.Nanosecond

// listAll writes the lists of a layer whose blocks need no slots.
func (p *addressed) listAll(layer int, dense bool) {
	l, heads := p.openLists(layer, dense), p.Geometry.KVHeads
	l.changedBy(len(p.step.decodes))
	p.Do(len(p.step.decodes), des.Time(heads)*listTime, func(i int) {
		var sel kv.Selection
		changed := false
		for g := layer * heads; g < (layer+1)*heads; g++ {
			p.selection(p.step.decodes[i], g, dense, &sel)
			changed = p.write(l, i, g, &sel) || changed
		}
		l.changes[i] = changed
	})
	p.closeLists(l)
}

// closeLists adds the slots of blocks that begin with this step's token, and hands the lists to
// the device.
func (p *addressed) closeLists(l *layerLists) {
	l.changed = l.changed || slices.Contains(l.changes, true) || l.Slot != nil &&
		len(p.cache.Refs()) > 0
	if l.Open != nil {
		p.listOpen(l)
	}
	l.Unchanged = !l.changed
	p.step.work.Lists = &l.Lists
}

// listOpen writes the slots of open blocks that are not those of the last step.
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
