package prefix

// index finds places by key: open addressing with linear probing, and no gap left behind, so that
// of equal keys the one that entered first is found first. Keys are hashes already.
type index struct {
	slots []int32 // place + 1; 0: empty
	n     int
}

func newIndex(places int) index {
	size := 8
	for size < 2*places {
		size *= 2
	}
	return index{slots: make([]int32, size)}
}

// find returns the first place with a key, of all places' keys; -1: none has it.
func (x *index) find(keys []uint64, key uint64) int32 {
	mask := uint64(len(x.slots) - 1)
	for i := key & mask; x.slots[i] != 0; i = (i + 1) & mask {
		if place := x.slots[i] - 1; keys[place] == key {
			return place
		}
	}
	return -1
}

// insert adds a place, whose key is set.
func (x *index) insert(keys []uint64, place int32) {
	if 2*(x.n+1) > len(x.slots) {
		x.grow(keys)
	}
	mask := uint64(len(x.slots) - 1)
	i := keys[place] & mask
	for x.slots[i] != 0 {
		i = (i + 1) & mask
	}
	x.slots[i] = place + 1
	x.n++
}

// remove takes a place out, whose key is still set.
func (x *index) remove(keys []uint64, place int32) {
	mask := uint64(len(x.slots) - 1)
	i := keys[place] & mask
	for x.slots[i] != place+1 {
		i = (i + 1) & mask
	}
	for j := i; ; {
		j = (j + 1) & mask
		if x.slots[j] == 0 {
			break
		}
		// Into the gap goes whatever is not yet in its own slot or behind the gap.
		if home := keys[x.slots[j]-1] & mask; (j-home)&mask >= (j-i)&mask {
			x.slots[i] = x.slots[j]
			i = j
		}
	}
	x.slots[i] = 0
	x.n--
}

// grow doubles the slots, in the order of the old ones from an empty one on, which keeps that of
// equal keys.
func (x *index) grow(keys []uint64) {
	old := x.slots
	*x = index{slots: make([]int32, 2*len(old))}
	start := 0
	for old[start] != 0 {
		start++
	}
	for i := range old {
		if v := old[(start+i)%len(old)]; v != 0 {
			x.insert(keys, v-1)
		}
	}
}
