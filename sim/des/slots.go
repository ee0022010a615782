package des

// Slots holds values in reusable slots. An event names a slot, because events are small.
type Slots[T any] struct {
	held   []T
	vacant []int64
}

// Hold stores a value and returns its slot.
func (s *Slots[T]) Hold(one T) int64 {
	if n := len(s.vacant); n > 0 {
		slot := s.vacant[n-1]
		s.vacant = s.vacant[:n-1]
		s.held[slot] = one
		return slot
	}
	s.held = append(s.held, one)
	return int64(len(s.held) - 1)
}

// Take returns the value of a slot and frees the slot.
func (s *Slots[T]) Take(slot int64) T {
	var none T
	one := s.held[slot]
	s.held[slot] = none
	s.vacant = append(s.vacant, slot)
	return one
}

// Len returns the number of stored values.
func (s *Slots[T]) Len() int { return len(s.held) - len(s.vacant) }

// All returns the values of all slots, zero for free ones.
func (s *Slots[T]) All() []T { return s.held }
