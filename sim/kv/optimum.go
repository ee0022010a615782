package kv

import (
	"fmt"
	"math"

	"github.com/sparseserve/sparseserve/sim/des"
)

// Optimum returns the blocks that a trace selects and the fewest loads in pools of a size: the
// misses of Belady's MIN ("A study of replacement algorithms for a virtual-storage computer",
// 1966), which evicts the block whose next use is furthest ahead. The blocks that a layer
// selects must be in HBM together. Other blocks may leave at any time, even blocks that a cache
// must hold, so no cache loads less. Unused loads of progressive attention do not count.
func (t *Trace) Optimum(hbmBytes int64, perLayer bool) (Stats, error) {
	pools := 1
	if perLayer {
		pools = len(layersOf(t.Geo, t.Sample))
	}
	slots := poolSlots(t.Geo, t.Sample, hbmBytes, pools)
	// next use, and place in the heap, from 1; the block whose next use is last is first
	due, at, heaps := make([]int32, t.ids()), make([]int32, t.ids()), make([]des.Heap[int32], pools)
	for i := range heaps {
		heaps[i].Before = func(a, b int32) bool { return due[a] > due[b] }
		heaps[i].Moved = func(id int32, to int) { at[id] = int32(to + 1) }
	}
	next := t.next()
	var stats Stats
	err := t.turns(func(turn, layer int, ids []int32, written int) error {
		h := &heaps[min(layer, pools-1)]
		missing := 0
		for _, id := range ids {
			if at[id] == 0 {
				missing++
			}
		}
		stats.Selected += int64(len(ids))
		stats.Loaded += int64(missing - written)
		stats.Written += int64(written)
		for h.Len()+missing > slots {
			if h.Len() == 0 || due[h.Top()] <= int32(turn) {
				return fmt.Errorf("kv: %d slots are too few for %d blocks that a layer selects at once",
					slots, len(ids))
			}
			h.Remove(0)
			stats.Evicted++
		}
		for i, id := range ids {
			if due[id] = next[i]; at[id] == 0 {
				h.Push(id)
			} else {
				h.Fix(int(at[id]) - 1)
			}
		}
		next = next[len(ids):]
		return nil
	})
	return stats, err
}

// ids is the number of blocks over all requests and groups.
func (t *Trace) ids() int {
	n := 0
	for i := range t.requests {
		n += t.requests[i].blocks * len(t.Sample.Groups)
	}
	return n
}

// turns calls f for each layer of each step with the blocks that its groups select. written is
// the number of new blocks, which need no load.
func (t *Trace) turns(f func(turn, layer int, ids []int32, written int) error) error {
	layers := layersOf(t.Geo, t.Sample)
	base, n := make([]int32, len(t.requests)), 0
	for i := range t.requests {
		base[i] = int32(n)
		n += t.requests[i].blocks * len(t.Sample.Groups)
	}
	seen := make([]bool, n)
	var ids []int32
	turn := 0
	for i := range t.steps {
		step := &t.steps[i]
		rows := step.rows
		for li, l := range layers {
			ids = ids[:0]
			written := 0
			for ; len(rows) > 0 && int(rows[0].group) < l.To; rows = rows[1:] {
				r, d := &rows[0], &step.decodes[rows[0].decode]
				request := &t.requests[d.request]
				first := base[d.request] + int32(int(r.group)*request.blocks)
				r.each(t.Geo.Blocks(int(d.tokens)), func(b int) {
					id := first + int32(b)
					ids = append(ids, id)
					if b >= request.stored && !seen[id] {
						written++
					}
					seen[id] = true
				})
			}
			if err := f(turn, li, ids, written); err != nil {
				return err
			}
			turn++
		}
	}
	return nil
}

const never = math.MaxInt32

// nextUses returns, for every use of a block in order, the turn of the block's next use, or
// never.
func (t *Trace) nextUses() []int32 {
	var next []int32
	last := make([]int, t.ids()) // use of each block so far, counted from 1
	t.turns(func(turn, _ int, ids []int32, _ int) error {
		for _, id := range ids {
			if last[id] > 0 {
				next[last[id]-1] = int32(turn)
			}
			next = append(next, never)
			last[id] = len(next)
		}
		return nil
	})
	return next
}

// each calls f for the blocks of a selection, given the number of existing blocks.
func (sel *Selection) each(blocks int, f func(b int)) {
	for b := range sel.Sinks {
		f(b)
	}
	for _, i := range sel.Next[:sel.Used] {
		f(sel.Sinks + int(i))
	}
	for b := sel.Tail; b < blocks; b++ { // from 0 if every block is selected
		f(b)
	}
}
