package kv

// Picks is one group's selection in one step, as indices of its request's candidate blocks.
// Candidates are the blocks between the sinks and the window, counted from 0.
type Picks struct {
	Next []uint16 // ascending, or in the order in which a progressive policy attends to them
	Used int      // the first Used are attended to; the others are loaded but not used
	// The change from the selection of the step before, if Follows. Added holds the positions in Next
	// of newly selected candidates, Came these candidates, and Dropped the deselected candidates.
	Follows              bool
	Added, Came, Dropped []uint16
}

// Clear empties the change lists of a row.
func (p *Picks) Clear() { p.Added, p.Came, p.Dropped = p.Added[:0], p.Came[:0], p.Dropped[:0] }

// Change compares a row's Next with prev and appends the differences to the row's lists. The
// bitmap covers all candidates; it is zero before and after.
func (p *Picks) Change(prev []uint16, in []uint64) {
	for _, b := range prev {
		in[b/64] |= 1 << (b % 64)
	}
	for i, b := range p.Next {
		if bit := uint64(1) << (b % 64); in[b/64]&bit != 0 {
			in[b/64] &^= bit
		} else {
			p.Added, p.Came = append(p.Added, uint16(i)), append(p.Came, b)
		}
	}
	for _, b := range prev {
		if bit := uint64(1) << (b % 64); in[b/64]&bit != 0 {
			in[b/64] &^= bit
			p.Dropped = append(p.Dropped, b)
		}
	}
}
