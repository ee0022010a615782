package prefix

// index finds places by key: open addressing with linear probing, and no gap left behind, so that
// of equal keys the one that entered first is found first. Keys are hashes already. A slot has half
// of the key, from which it is at home too: keys are compared where that half is equal, as tables
// of millions of them are in no core's caches.
type index struct {
	slots []slot
	n     int
}

// slot is the upper half of a key, then the place + 1; 0: empty.
type slot uint64

func newSlot(key uint64, place int32) slot { return slot(key>>32<<32 | uint64(uint32(place+1))) }

func (s slot) half() uint64 { return uint64(s >> 32) }
func (s slot) place() int32 { return int32(uint32(s)) - 1 }

func newIndex(places int) index {
	size := 8
	for size < 2*places {
		size *= 2
	}
	return index{slots: make([]slot, size)}
}

// find returns the first place with a key, of all places' keys; -1: none has it.
func (x *index) find(keys []uint64, key uint64) int32 {
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

// insert adds a place, whose key is set.
func (x *index) insert(keys []uint64, place int32) {
	if 2*(x.n+1) > len(x.slots) {
		x.grow()
	}
	x.add(newSlot(keys[place], place))
}

func (x *index) add(s slot) {
	mask := uint64(len(x.slots) - 1)
	i := s.half() & mask
	for x.slots[i] != 0 {
		i = (i + 1) & mask
	}
	x.slots[i] = s
	x.n++
}

// remove takes a place out, whose key is still set.
func (x *index) remove(keys []uint64, place int32) {
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
		// Into the gap goes whatever is not yet in its own slot or behind the gap.
		if home := x.slots[j].half() & mask; (j-home)&mask >= (j-i)&mask {
			x.slots[i] = x.slots[j]
			i = j
		}
	}
	x.slots[i] = 0
	x.n--
}

// grow doubles the slots, in the order of the old ones from an empty one on, which keeps that of
// equal keys.
func (x *index) grow() {
	old := x.slots
	*x = index{slots: make([]slot, 2*len(old))}
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
