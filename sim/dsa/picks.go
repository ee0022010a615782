package dsa

// Picks is what one group selects in one step, of its request's candidate blocks: those between
// the sinks and the window, counted from 0.
type Picks struct {
	Next []uint16 // ascending, or in the order in which a progressive policy attends to them
	Used int      // the first Used are attended to; the others are loaded ahead in vain
	// How Next follows from that of the step before: positions in Next of candidates that were
	// not in it, these candidates, and those that were and no longer are.
	Added, Came, Dropped []uint16
}

// clear makes a row follow from an equal one.
func (p *Picks) clear() { p.Added, p.Came, p.Dropped = p.Added[:0], p.Came[:0], p.Dropped[:0] }

// change finds how a row's Next follows from prev and appends it to the row's lists. The bitmap
// covers all candidates; it is zero before and after.
func (p *Picks) change(prev []uint16, in []uint64) {
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
