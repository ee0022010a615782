package reference

import (
	"cmp"
	"slices"
)

// HotBuffer holds the rows of one request in one layer that are in HBM. It records each slot's last
// use. Slots that were never used precede all others in LRU order, by number.
type HotBuffer struct {
	Token []int32 // by slot, -1 for none
	used  []int   // by slot
	now   int
}

// NewHotBuffer returns a buffer of the given slots; slot i holds token i for i < tokens.
func NewHotBuffer(slots, tokens int) *HotBuffer {
	b := &HotBuffer{Token: make([]int32, slots), used: make([]int, slots), now: slots}
	for i := range b.Token {
		b.Token[i], b.used[i] = -1, i
		if i < tokens {
			b.Token[i] = int32(i)
		}
	}
	return b
}

// HotBufferOf returns a buffer by the token of each slot, -1 for none, and the slots in LRU order.
func HotBufferOf(token, order []int32) *HotBuffer {
	b := &HotBuffer{Token: slices.Clone(token), used: make([]int, len(token)), now: len(token)}
	for i, slot := range order {
		b.used[slot] = i
	}
	return b
}

// Order returns the slots, the least recently used first.
func (b *HotBuffer) Order() []int32 {
	order := make([]int32, len(b.Token))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(x, y int32) int { return cmp.Compare(b.used[x], b.used[y]) })
	return order
}

// Swap assigns a slot to every selected token, and to the newest token, which has none yet. It
// returns the slots of the selected tokens, the slot of the newest, and the tokens to load from the
// host.
func (b *HotBuffer) Swap(selected []int32, newest int32) (slots []int32, fresh int32,
	loads []int32) {
	wanted := slices.Clone(selected)
	if !slices.Contains(wanted, newest) {
		wanted = append(wanted, newest)
	}
	found := map[int32]int32{} // slots of the wanted tokens
	for _, token := range wanted {
		found[token] = -1
	}
	var victims []int32
	for _, slot := range b.Order() {
		token := b.Token[slot]
		if _, ok := found[token]; !ok || token < 0 {
			victims = append(victims, slot)
			continue
		}
		found[token] = slot
		b.use(slot)
	}
	for _, token := range wanted {
		slot := found[token]
		if slot < 0 {
			slot, victims = victims[0], victims[1:]
			b.Token[slot] = token
			b.use(slot)
			if token != newest {
				loads = append(loads, token)
			}
		}
		if slots = append(slots, slot); token == newest {
			fresh = slot
		}
	}
	return slots[:len(selected)], fresh, loads
}

func (b *HotBuffer) use(slot int32) {
	b.now++
	b.used[slot] = b.now
}
