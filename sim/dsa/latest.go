package dsa

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/sparseserve/sparseserve/sim/kv"
)

// Latest holds the newest selections of one request's groups when no Cycle holds them.
type Latest struct {
	rows  []kv.Picks
	spare []uint16 // buffer for the next row
	in    []uint64
}

// NewLatest returns empty selections of the given number of groups.
func NewLatest(groups int) *Latest { return &Latest{rows: make([]kv.Picks, groups)} }

// Picks returns a group's selection. Read only.
func (r *Latest) Picks(g int) kv.Picks { return r.rows[g] }

// Choose sets a group's selection from a bitmap of k candidates. follows reports whether the
// stored row is from the step before. It returns an error if the bitmap does not have k bits
// set. Calls for different groups of one request may not run concurrently.
func (r *Latest) Choose(g int, in []uint64, k int, follows bool) error {
	r.spare = r.spare[:0]
	for w, word := range in {
		for ; word != 0; word &= word - 1 {
			r.spare = append(r.spare, uint16(w*64+bits.TrailingZeros64(word)))
		}
	}
	if len(r.spare) != k {
		return fmt.Errorf("%d different candidate blocks chosen, want %d", len(r.spare), k)
	}
	r.set(g, k, follows)
	return nil
}

// Take sets a group's selection to the candidates next, in attention order if inOrder, else
// sorted ascending. follows reports whether the stored row is from the step before.
func (r *Latest) Take(g int, next []uint16, used int, inOrder, follows bool) {
	r.spare = append(r.spare[:0], next...)
	if !inOrder {
		slices.Sort(r.spare)
	}
	r.set(g, used, follows)
}

// set makes the spare list a group's row.
func (r *Latest) set(g, used int, follows bool) {
	row := &r.rows[g]
	r.spare, row.Next, row.Used = row.Next, r.spare, used
	row.Clear()
	if row.Follows = follows; follows {
		most := 0
		for _, list := range [2][]uint16{row.Next, r.spare} {
			for _, b := range list {
				most = max(most, int(b))
			}
		}
		for len(r.in) <= most/64 {
			r.in = append(r.in, 0)
		}
		row.Change(r.spare, r.in)
	}
	r.spare = r.spare[:0]
}

// alter removes the dropped candidates from a group's row and adds the added ones. All lists
// are ascending.
func (r *Latest) alter(g int, dropped, added []uint16, follows bool) error {
	r.spare = r.spare[:0]
	d, a := 0, 0
	for _, b := range r.rows[g].Next {
		if d < len(dropped) && dropped[d] == b {
			d++
			continue
		}
		for a < len(added) && added[a] < b {
			r.spare = append(r.spare, added[a])
			a++
		}
		if a < len(added) && added[a] == b {
			return fmt.Errorf("candidate %d is added and was there", b)
		}
		r.spare = append(r.spare, b)
	}
	r.spare = append(r.spare, added[a:]...)
	if d != len(dropped) {
		return fmt.Errorf("candidate %d is dropped and was not there", dropped[d])
	}
	r.set(g, len(r.spare), follows)
	return nil
}

// keep repeats a group's selection of the step before.
func (r *Latest) keep(g int) {
	r.rows[g].Clear()
	r.rows[g].Follows = true
}

// first selects a group's first k candidates.
func (r *Latest) first(g, k int) {
	r.spare = r.spare[:0]
	for i := range k {
		r.spare = append(r.spare, uint16(i))
	}
	r.set(g, k, false)
}
