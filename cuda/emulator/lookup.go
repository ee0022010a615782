package emulator

import "github.com/sparseserve/sparseserve/cuda"

// lookupStateBytes is the size of LookupArgs.State: a count of misses, and a count of each round's
// loads.
func lookupStateBytes(a *cuda.LookupArgs) int64 { return 8 + 4*int64(a.Rounds) }

func lookup(m *access, a *cuda.LookupArgs) {
	m.need(a.Batch > 0 && a.Heads > 0 && a.Stride > 0 && a.PageStride > 0, "units with lists")
	m.need(a.Before == 0 || a.Rounds > 0 && a.Micro > 0, "rounds")
	evict(m, a.Evicted, a.Evictions)
	m.zeroed("State", a.State, lookupStateBytes(a), lookupStateBytes(a))
	loaded := make([]int, a.Rounds) // of each round
	misses := 0
	for unit := range int(a.Batch * a.Heads) {
		row, head := unit/int(a.Heads), unit%int(a.Heads)
		group := int(a.Group) + head
		table := view[int32](m, "Table entry", *at[cuda.Ptr](m, "Table", a.Table, row),
			group*int(*at[int32](m, "Cap", a.Cap, row)), int(*at[int32](m, "Cap", a.Cap, row)))
		n := int(*at[int32](m, "Named", a.Named, unit))
		list := view[int32](m, "List", a.List, unit*int(a.Stride), n)
		slots := view[int32](m, "Slot", a.Slot, unit*int(a.Stride), n)
		for entry, block := range list {
			if int(block) < 0 || int(block) >= len(table) {
				m.fault("List", a.List, 4, "unit %d lists block %d of a table of %d", unit, block,
					len(table))
			}
			if slots[entry] = table[block] - 1; slots[entry] >= 0 {
				continue
			}
			number := misses
			if misses++; number >= int(a.Frees) { // the caller's mistake: the count shows it
				slots[entry] = 0
				continue
			}
			slot := *at[int32](m, "FreeSlot", a.FreeSlot, number)
			slots[entry], table[block] = slot, slot+1
			to := number
			if a.Before != 0 {
				round := 0
				if a.First == 0 || entry >= int(*at[int32](m, "First", a.First, unit)) {
					round = entry / int(a.Micro)
				}
				if round >= len(loaded) {
					m.fault("List", a.List, 4, "unit %d misses block %d for round %d of %d", unit,
						block, round, a.Rounds)
				}
				to = int(*at[int64](m, "Before", a.Before, round)) + loaded[round]
				if to >= endOf(m, a, round) {
					continue // likewise
				}
				loaded[round]++
			}
			*at[cuda.Ptr](m, "Src", a.Src, to) = *at[cuda.Ptr](m, "Page", a.Page,
				row*int(a.PageStride)+int(block)) + cuda.Ptr(int64(group)*a.BlockBytes)
			*at[cuda.Ptr](m, "Dst", a.Dst, to) = a.Pool + cuda.Ptr(int64(slot)*a.BlockBytes)
		}
	}
	if a.Before != 0 && a.Frees > 0 { // rest of the caller's count
		slot := a.Pool + cuda.Ptr(int64(*at[int32](m, "FreeSlot", a.FreeSlot, 0))*a.BlockBytes)
		for round, n := range loaded {
			for i := int(*at[int64](m, "Before", a.Before, round)) + n; i < endOf(m, a,
				round); i++ {
				*at[cuda.Ptr](m, "Src", a.Src, i), *at[cuda.Ptr](m, "Dst", a.Dst, i) = slot, slot
			}
		}
	}
	*at[int64](m, "Loads", a.Loads, 0) = int64(min(misses, int(a.Frees)))
	if a.Misses != 0 {
		*at[int64](m, "Misses", a.Misses, 0) = int64(misses)
	}
}

// endOf returns the end of a round's loads.
func endOf(m *access, a *cuda.LookupArgs, round int) int {
	if round+1 < int(a.Rounds) {
		return int(*at[int64](m, "Before", a.Before, round+1))
	}
	return int(a.Frees)
}

func evict(m *access, entries cuda.Ptr, n int32) {
	for i := range int(n) {
		*at[int32](m, "Evicted entry", *at[cuda.Ptr](m, "Evicted", entries, i), 0) = 0
	}
}

func table(m *access, a *cuda.TableArgs) {
	evict(m, a.Evicted, a.Evictions)
	for i := range int(a.Entries) {
		*at[int32](m, "Entry", *at[cuda.Ptr](m, "Entry", a.Entry, i), 0) = *at[int32](m, "Slot",
			a.Slot, i) + 1
	}
}
