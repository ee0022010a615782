package kv

import (
	"fmt"
	"math"
)

// Optimum returns what a trace selects and what it would at least have to load
// in pools of a size: the misses of Belady's MIN ("A study of replacement
// algorithms for a virtual-storage computer", 1966), which evicts the block
// whose next use lies furthest in the future. What a layer's groups select must
// be in HBM together; apart from that any block may go at any time, also those
// that a cache must hold, so no cache loads less.
func (t *Trace) Optimum(hbmBytes int64, perLayer bool) (Stats, error) {
	layers, pools := layersOf(t.geo, t.sample), 1
	if perLayer {
		pools = len(layers)
	}
	if t.future == nil {
		t.future = t.uses(layers)
	}
	slots := poolSlots(t.geo, t.sample, hbmBytes, pools)
	heaps := make([]nextUses, pools)
	o := optimum{key: make([]int32, t.ids()), at: make([]int32, t.ids())}
	var stats Stats
	for i := range t.future {
		u := &t.future[i]
		h := &heaps[0]
		if perLayer {
			h = &heaps[u.layer]
		}
		missing := 0
		for _, id := range u.ids {
			if o.at[id] == 0 {
				missing++
			}
		}
		stats.Selected += int64(len(u.ids))
		stats.Loaded += int64(missing - u.written)
		stats.Written += int64(u.written)
		for len(*h)+missing > slots {
			if len(*h) == 0 || o.key[(*h)[0]] <= int32(i) {
				return stats, fmt.Errorf("kv: %d slots are too few for %d blocks that a layer selects at once", slots, len(u.ids))
			}
			o.pop(h)
			stats.Evicted++
		}
		for j, id := range u.ids {
			o.key[id] = u.next[j]
			if o.at[id] == 0 {
				*h = append(*h, id)
				o.at[id] = int32(len(*h))
			}
			o.up(h, int(o.at[id])-1)
		}
	}
	return stats, nil
}

// use is what one layer's turn in one step selects.
type use struct {
	layer   int
	ids     []int32
	next    []int32 // the turn that uses each next, never when none does
	written int     // of ids, those that are new and need no load
}

const never = math.MaxInt32

// ids is how many blocks there are, of all requests and groups.
func (t *Trace) ids() int {
	n := 0
	for i := range t.requests {
		n += t.requests[i].blocks * len(t.sample.Groups)
	}
	return n
}

// uses lists what the turns of the layers select, in order.
func (t *Trace) uses(layers []layerGroups) []use {
	base, n := make([]int32, len(t.requests)), 0
	for i := range t.requests {
		base[i] = int32(n)
		n += t.requests[i].blocks * len(t.sample.Groups)
	}
	var uses []use
	seen := make([]bool, n)
	for i := range t.steps {
		step := &t.steps[i]
		rows := step.rows
		for li := range layers {
			u := use{layer: li}
			for ; len(rows) > 0 && int(rows[0].group) < layers[li].to; rows = rows[1:] {
				r, d := &rows[0], &step.decodes[rows[0].decode]
				request := &t.requests[d.request]
				first := base[d.request] + int32(int(r.group)*request.blocks)
				r.each(t.geo.Blocks(int(d.tokens)), func(b int) {
					id := first + int32(b)
					u.ids = append(u.ids, id)
					if b >= request.stored && !seen[id] {
						u.written++
					}
					seen[id] = true
				})
			}
			uses = append(uses, u)
		}
	}
	next := make([]int32, n)
	for id := range next {
		next[id] = never
	}
	for i := len(uses) - 1; i >= 0; i-- {
		u := &uses[i]
		u.next = make([]int32, len(u.ids))
		for j, id := range u.ids {
			u.next[j], next[id] = next[id], int32(i)
		}
	}
	return uses
}

// each calls f for the blocks of a selection, of so many that exist.
func (r *tracedRow) each(blocks int, f func(b int)) {
	tail := int(r.tail)
	if r.all {
		tail = 0
	}
	for b := range int(r.sinks) {
		f(b)
	}
	for _, i := range r.next {
		f(int(r.sinks) + int(i))
	}
	for b := tail; b < blocks; b++ {
		f(b)
	}
}

// nextUses is a heap of the blocks in a pool, the one that is used last first.
type nextUses []int32

// optimum is what is known of each block.
type optimum struct {
	key []int32 // turn of the next use
	at  []int32 // place in its pool's heap, from 1; 0 = not in HBM
}

func (o *optimum) set(h *nextUses, i int, id int32) {
	(*h)[i] = id
	o.at[id] = int32(i + 1)
}

// up moves a block whose key has grown.
func (o *optimum) up(h *nextUses, i int) {
	id := (*h)[i]
	for i > 0 {
		parent := (i - 1) / 2
		if o.key[(*h)[parent]] >= o.key[id] {
			break
		}
		o.set(h, i, (*h)[parent])
		i = parent
	}
	o.set(h, i, id)
}

// pop drops the block that is used last.
func (o *optimum) pop(h *nextUses) {
	o.at[(*h)[0]] = 0
	n := len(*h) - 1
	id := (*h)[n]
	*h = (*h)[:n]
	if n == 0 {
		return
	}
	i := 0
	for {
		c := 2*i + 1
		if c >= n {
			break
		}
		if c+1 < n && o.key[(*h)[c+1]] > o.key[(*h)[c]] {
			c++
		}
		if o.key[(*h)[c]] <= o.key[id] {
			break
		}
		o.set(h, i, (*h)[c])
		i = c
	}
	o.set(h, i, id)
}
