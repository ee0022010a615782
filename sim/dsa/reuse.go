package dsa

import (
	"slices"
	"sort"
)

// Reuse says which picks of a cycle an LRU buffer of so many candidates lacks. A buffer that serves
// one group of one request sees that group's cycle and nothing else, so its misses follow from the
// step and from how long it has been in use. Immutable and safe for concurrent use.
//
// Candidates of one step are used at once: those that hit are newer than those of earlier steps in
// their order before, those that missed are newer still, in the order of picks (cuda/swap_in.cu).
type Reuse struct {
	misses []uint16 // by step, of a buffer in use for long
	ages   csr      // of the hits of each step whose last use was 2 steps ago and more, ascending
	hits   []uint16 // of them all
}

// csr is one list a step, end to end.
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

// Settled is the age of a buffer in use for long.
const Settled = 1 << 30

// NewReuse follows the cycle until its second round ends: the first round fills the buffer. Slots
// are at least as many as a step picks. Candidates from within on are elsewhere, and so are picks
// of them no concern of the buffer.
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

// below returns the picks that are below a candidate, in their order.
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

// Misses returns how many picks of a step are not in the buffer, of one that was empty so many
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

// lruOrder is the candidates in a buffer, the least recently used first.
type lruOrder struct {
	order   []uint16
	in      []bool
	last    []int32 // step of the last use
	slots   int
	scratch []uint16
	below   []uint16
}

// use has the picks of step i in the buffer.
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
