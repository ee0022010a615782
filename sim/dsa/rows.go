package dsa

import (
	"fmt"
	"math/bits"
)

// Rows are the newest selections of one request's groups, where no Stream holds
// them. As in a Stream, a block that stays selected keeps its position in its
// group's row.
type Rows struct {
	k, words   int
	next, prev []uint16 // [groups][k] candidate indices
	diff       []uint64 // [groups][words]
	known      []bool   // [groups] prev and diff are of the step before
}

// NewRows returns the rows of so many groups, k blocks each.
func NewRows(groups, k int) *Rows {
	words := (k + 63) / 64
	return &Rows{
		k: k, words: words, next: make([]uint16, groups*k), prev: make([]uint16, groups*k),
		diff: make([]uint64, groups*words), known: make([]bool, groups),
	}
}

// Row returns a group's selection, and when it is known how it follows from
// that of the step before, that one and the bitmap of the positions at which
// they differ. Read only.
func (r *Rows) Row(g int) (next, prev []uint16, diff []uint64) {
	next = r.next[g*r.k:][:r.k:r.k]
	if !r.known[g] {
		return next, nil, nil
	}
	return next, r.prev[g*r.k:][:r.k:r.k], r.diff[g*r.words:][:r.words:r.words]
}

// Choose makes the candidates of a bitmap a group's new selection; follows says
// that its row is of the step before. It uses up the bitmap.
func (r *Rows) Choose(g int, in []uint64, follows bool) error {
	n := 0
	for _, w := range in {
		n += bits.OnesCount64(w)
	}
	if n != r.k {
		return fmt.Errorf("%d different candidate blocks chosen, want %d", n, r.k)
	}
	next := r.next[g*r.k:][:r.k]
	if r.known[g] = follows; !follows {
		i := 0
		for w, word := range in {
			for ; word != 0; word &= word - 1 {
				next[i] = uint16(w*64 + bits.TrailingZeros64(word))
				i++
			}
		}
		return nil
	}
	prev, diff := r.turn(g)
	alignTo(prev, next, diff, in)
	return nil
}

// turn makes the newest row of a group the one before.
func (r *Rows) turn(g int) (prev []uint16, diff []uint64) {
	prev, diff = r.prev[g*r.k:][:r.k], r.diff[g*r.words:][:r.words]
	copy(prev, r.next[g*r.k:][:r.k])
	clear(diff)
	return prev, diff
}

// keep makes a group's selection that of the step before.
func (r *Rows) keep(g int) {
	r.turn(g)
	r.known[g] = true
}

// first makes a group's selection its first k candidates.
func (r *Rows) first(g int) {
	for i := range r.next[g*r.k:][:r.k] {
		r.next[g*r.k+i] = uint16(i)
	}
	r.known[g] = false
}
