package dsa

// Picks is what one group selects in one step, of its request's candidate blocks: those between
// the sinks and the window, counted from 0.
type Picks struct {
	Next []uint16 // ascending, or in the order in which a progressive policy attends to them
	Used int      // the first Used are attended to; the others are loaded ahead in vain
	// How Next follows from that of the step before: positions in Next of candidates that were
	// not in it, and candidates that were and no longer are.
	Added, Dropped []uint16
}

// change finds how next follows from prev and appends it to added and dropped. The bitmap
// covers all candidates; it is zero before and after.
func change(prev, next []uint16, added, dropped []uint16, in []uint64) (a, d []uint16) {
	for _, b := range prev {
		in[b/64] |= 1 << (b % 64)
	}
	for i, b := range next {
		if bit := uint64(1) << (b % 64); in[b/64]&bit != 0 {
			in[b/64] &^= bit
		} else {
			added = append(added, uint16(i))
		}
	}
	for _, b := range prev {
		if bit := uint64(1) << (b % 64); in[b/64]&bit != 0 {
			in[b/64] &^= bit
			dropped = append(dropped, b)
		}
	}
	return added, dropped
}
