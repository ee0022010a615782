package dsa

import (
	"slices"
	"sort"
)

// Reuse precomputes, for each step of a cycle, the misses of an LRU buffer of the given
// capacity. A buffer that serves one group of one request sees only that group's cycle. Its
// misses depend only on the step and on the age of the buffer. Immutable and safe for
// concurrent use.
//
// The candidates of one step are touched together. Hits become newer than the candidates of
// earlier steps and keep their order. Misses become newer still, in the order of picks
// (cuda/swap_in.cu).
type Reuse struct {
	misses []uint16 // by step, of a full buffer
	ages   csr      // per step, reuse distances of 2 steps and more among the hits, ascending
	hits   []uint16 // by step, all hits
}

// csr is one list per step, concatenated.
type csr struct {
	ids []uint16
	end []int32 // [steps]
}

func (c *csr) at(t int) []uint16 {
	from := int32(0)
	if t > 0 {
		from = c.end[t-1]
	}
	return c.ids[from:c.end[t]:c.end[t]]
}

// Settled is an age at which the buffer is full.
const Settled = 1 << 30

// NewReuse simulates two rounds of the cycle: the first fills the buffer, the second is
// recorded. slots is at least the number of picks of any step. Candidates >= within stay in HBM
// and never enter the buffer.
func NewReuse(c *Cycle, slots, within int) *Reuse {
	r := &Reuse{misses: make([]uint16, c.Steps), hits: make([]uint16, c.Steps)}
	b := lruOrder{in: make([]bool, c.Candidates), last: make([]int32, c.Candidates), slots: slots}
	for i := range 2 * c.Steps {
		t := i % c.Steps
		picks := below(c.Next(t), within, &b.below)
		if i >= c.Steps {
			r.note(t, i, picks, &b)
		}
		b.use(i, picks)
	}
	return r
}

// below returns the picks smaller than candidate, in their order.
func below(picks []uint16, candidate int, scratch *[]uint16) []uint16 {
	if !slices.ContainsFunc(picks, func(p uint16) bool { return int(p) >= candidate }) {
		return picks
	}
	*scratch = (*scratch)[:0]
	for _, p := range picks {
		if int(p) < candidate {
			*scratch = append(*scratch, p)
		}
	}
	return *scratch
}

// note records step i of the second round, the t-th of the cycle.
func (r *Reuse) note(t, i int, picks []uint16, b *lruOrder) {
	from := len(r.ages.ids)
	for _, p := range picks {
		if !b.in[p] {
			r.misses[t]++
			continue
		}
		r.hits[t]++
		if age := i - int(b.last[p]); age > 1 {
			r.ages.ids = append(r.ages.ids, uint16(age))
		}
	}
	ages := r.ages.ids[from:]
	sort.Slice(ages, func(x, y int) bool { return ages[x] < ages[y] })
	r.ages.end = append(r.ages.end, int32(len(r.ages.ids)))
}

// Misses returns the number of picks of a step that are not in a buffer which was empty age
// steps before.
func (r *Reuse) Misses(step, age int) int {
	switch {
	case age <= 0:
		return int(r.misses[step] + r.hits[step])
	case age >= len(r.misses):
		return int(r.misses[step])
	}
	ages := r.ages.at(step)
	older := len(ages) - sort.Search(len(ages), func(i int) bool { return int(ages[i]) > age })
	return int(r.misses[step]) + older
}

// lruOrder is the candidates in a buffer, least recently used first.
type lruOrder struct {
	order   []uint16
	in      []bool
	last    []int32 // step of the last use
	slots   int
	scratch []uint16
	below   []uint16
}

// use touches the picks of step i and evicts the least recently used candidates beyond the
// slots.
func (b *lruOrder) use(i int, picks []uint16) {
	missing := 0
	for _, p := range picks {
		b.last[p] = int32(i)
		if !b.in[p] {
			missing++
		}
	}
	kept, hits := b.scratch[:0], 0
	for _, p := range b.order { // not picked in this step
		if b.last[p] != int32(i) {
			kept = append(kept, p)
		} else {
			hits++
		}
	}
	evicted := max(0, len(kept)+hits+missing-b.slots)
	for _, p := range kept[:evicted] {
		b.in[p] = false
	}
	for _, p := range b.order {
		if b.last[p] == int32(i) {
			kept = append(kept, p)
		}
	}
	for _, p := range picks {
		if !b.in[p] {
			kept, b.in[p] = append(kept, p), true
		}
	}
	b.scratch, b.order = b.order, kept[evicted:]
}
