package prefix

// Index maps keys to places: open addressing with linear probing and without tombstones, so that of
// equal keys the first one inserted is found first. Keys are already hashes. A slot stores half of
// the key, which also determines its home slot. Full keys are compared only if the halves match,
// because tables of millions of keys exceed a core's caches.
type Index struct {
	slots []slot
	n     int
}

// slot is the upper half of a key and the place + 1; 0: empty.
type slot uint64

func newSlot(key uint64, place int32) slot { return slot(key>>32<<32 | uint64(uint32(place+1))) }

func (s slot) half() uint64 { return uint64(s >> 32) }
func (s slot) place() int32 { return int32(uint32(s)) - 1 }

// NewIndex returns an index with room for the given number of places.
func NewIndex(places int) Index {
	size := 8
	for size < 2*places {
		size *= 2
	}
	return Index{slots: make([]slot, size)}
}

// Len returns the number of places.
func (x *Index) Len() int { return x.n }

// Find returns the first place with the key, or -1. keys lists the keys of all places.
func (x *Index) Find(keys []uint64, key uint64) int32 {
	mask, half := uint64(len(x.slots)-1), key>>32
	for i := half & mask; ; i = (i + 1) & mask {
		s := x.slots[i]
		if s == 0 {
			return -1
		}
		if s.half() == half && keys[s.place()] == key {
			return s.place()
		}
	}
}

// Insert adds a place. Its key must be set.
func (x *Index) Insert(keys []uint64, place int32) {
	if 2*(x.n+1) > len(x.slots) {
		x.grow()
	}
	x.add(newSlot(keys[place], place))
}

func (x *Index) add(s slot) {
	mask := uint64(len(x.slots) - 1)
	i := s.half() & mask
	for x.slots[i] != 0 {
		i = (i + 1) & mask
	}
	x.slots[i] = s
	x.n++
}

// Remove deletes a place. Its key must still be set.
func (x *Index) Remove(keys []uint64, place int32) {
	mask, gone := uint64(len(x.slots)-1), newSlot(keys[place], place)
	i := gone.half() & mask
	for x.slots[i] != gone {
		i = (i + 1) & mask
	}
	for j := i; ; {
		j = (j + 1) & mask
		if x.slots[j] == 0 {
			break
		}
		// Move the entry into the gap unless its home slot is behind the gap.
		if home := x.slots[j].half() & mask; (j-home)&mask >= (j-i)&mask {
			x.slots[i] = x.slots[j]
			i = j
		}
	}
	x.slots[i] = 0
	x.n--
}

// grow doubles the slots. It reinserts entries in order from an empty slot on, which keeps the
// order of equal keys.
func (x *Index) grow() {
	old := x.slots
	*x = Index{slots: make([]slot, 2*len(old))}
	start := 0
	for old[start] != 0 {
		start++
	}
	for i := range old {
		if s := old[(start+i)%len(old)]; s != 0 {
			x.add(s)
		}
	}
}
