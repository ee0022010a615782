//go:build gpu

package cuda

import (
	"fmt"
	"slices"
	"testing"
)

// residency is a batch whose requests' tables, lists and pages are random.
type residency struct {
	batch, heads, layer, layers, stride, micro int
	cap                                        []int32
	table                                      [][]int32 // slot + 1 of a block, or 0; [group][cap]
	list, named, first                         []int32
	page                                       []int64
	free                                       []int32
	evicted                                    [][3]int // request, group, block
}

const residencyBlock = 16384

func (g *gpu) residency(batch, heads, stride, micro int, missing float64) *residency {
	r := &residency{batch: batch, heads: heads, layer: 1, layers: 3, stride: stride, micro: micro}
	next := int32(0)
	for range batch {
		n := stride + g.r.IntN(100)
		r.cap = append(r.cap, int32(n))
		table := make([]int32, r.layers*heads*n)
		for i := range table {
			if next++; g.r.Float64() >= missing {
				table[i] = next
			}
		}
		r.table = append(r.table, table)
	}
	for row, n := range r.cap {
		for b := range stride + 100 {
			page := int64(0)
			if b < int(n) {
				page = 1<<40 + int64(row)<<30 + int64(b)*int64(r.layers*heads)*residencyBlock
			}
			r.page = append(r.page, page)
		}
		for h := range heads {
			named := g.r.IntN(stride + 1)
			if h == 0 {
				named = stride
			}
			list := make([]int32, stride)
			for i, b := range g.r.Perm(int(n))[:named] {
				list[i] = int32(b)
			}
			r.list, r.named, r.first = append(r.list, list...), append(r.named, int32(named)),
				append(r.first, int32(g.r.IntN(named+1)))
			// Blocks of other layers, and of this one outside the list, lose their slots.
			for b := range n {
				group := r.layer*heads + h
				if g.r.IntN(20) == 0 && !slices.Contains(list[:named], b) {
					r.evicted = append(r.evicted, [3]int{row, group, int(b)}, [3]int{row, group - heads, int(b)})
				}
			}
		}
	}
	for range batch * heads * stride {
		next++
		r.free = append(r.free, next)
	}
	return r
}

// want carries the lookup out on the host, and returns the slots and each round's loads.
func (r *residency) want(rounds int) (slots []int32, loads [][][2]int64, misses int) {
	for _, e := range r.evicted {
		r.table[e[0]][e[1]*int(r.cap[e[0]])+e[2]] = 0
	}
	slots, loads = make([]int32, len(r.list)), make([][][2]int64, max(1, rounds))
	for unit, named := range r.named {
		row, group := unit/r.heads, r.layer*r.heads+unit%r.heads
		for i, b := range r.list[unit*r.stride:][:named] {
			at := &r.table[row][group*int(r.cap[row])+int(b)]
			if *at == 0 {
				slot := r.free[misses]
				misses++
				*at = slot + 1
				round := 0
				if rounds > 0 && i >= int(r.first[unit]) {
					round = i / r.micro
				}
				loads[round] = append(loads[round],
					[2]int64{r.page[row*(r.stride+100)+int(b)] + int64(group)*residencyBlock,
						7<<40 + int64(slot)*residencyBlock})
			}
			slots[unit*r.stride+i] = *at - 1
		}
	}
	return slots, loads, misses
}

// The lookup's slots, tables and loads equal a walk over the lists, call after call.
func TestGPULookup(t *testing.T) {
	onGPU(t, func(g *gpu) {
		for _, c := range []struct {
			batch, heads, stride, micro int
			missing                     float64
		}{
			{1, 1, 1, 0, 1}, {1, 8, 33, 0, 0.5}, {3, 5, 64, 0, 0.1}, {8, 32, 64, 0, 0.05},
			{16, 32, 64, 0, 0}, {16, 32, 96, 0, 1}, {5, 32, 400, 0, 0.3},
			{64, 32, 64, 0, 0.2}, {1, 8, 64, 4, 0.5}, {8, 32, 160, 4, 0.2}, {3, 32, 33, 8, 1},
		} {
			r := g.residency(c.batch, c.heads, c.stride, c.micro, c.missing)
			rounds := 0
			if c.micro > 0 {
				rounds = (c.stride + c.micro - 1) / c.micro
			}
			tables := make([]int64, c.batch)
			for i := range tables {
				tables[i] = int64(upload(g, r.table[i]))
			}
			entry := func(e [3]int) int64 { return tables[e[0]] + 4*int64(e[1]*int(r.cap[e[0]])+e[2]) }
			var evicted []int64
			for _, e := range r.evicted {
				evicted = append(evicted, entry(e))
			}
			n := c.batch * c.heads * c.stride
			a := LookupArgs{
				Table: upload(g, tables), Cap: upload(g, r.cap), Page: upload(g, r.page),
				List: upload(g, r.list), Named: upload(g, r.named), Slot: upload(g, make([]int32, n)),
				FreeSlot: upload(g, r.free), Src: upload(g, make([]int64, n)), Dst: upload(g, make([]int64, n)),
				Loads: upload(g, make([]int64, 1)), Pool: 7 << 40, BlockBytes: residencyBlock,
				Batch: int32(c.batch), Heads: int32(c.heads), Stride: int32(c.stride),
				PageStride: int32(c.stride + 100), Group: int32(r.layer * c.heads), Frees: int32(len(r.free)),
				Rounds: int32(rounds), Micro: int32(c.micro),
			}
			if a.Evictions = int32(len(evicted)); len(evicted) > 0 {
				a.Evicted = upload(g, evicted)
			}
			bytes, err := g.Workspace(&a)
			g.must(err)
			a.State = upload(g, make([]byte, bytes))
			for call := range 3 {
				what := fmt.Sprintf("%+v, call %d", c, call)
				before := make([]int64, rounds)
				slots, loads, misses := r.want(rounds)
				for i := 1; i < rounds; i++ {
					before[i] = before[i-1] + int64(len(loads[i-1]))
				}
				if rounds > 0 {
					a.First, a.Before = upload(g, r.first), upload(g, before)
				}
				g.must(g.Launch(&a, 0))
				g.must(g.DeviceSync())
				if got := download[int64](g, a.Loads, 1)[0]; got != int64(misses) || call == 0 &&
					c.missing == 1 && misses == 0 {
					t.Fatalf("%s: %d misses, want %d", what, got, misses)
				}
				got := download[int32](g, a.Slot, n)
				for unit, named := range r.named {
					if at := unit * c.stride; !slices.Equal(got[at:at+int(named)], slots[at:at+int(named)]) {
						t.Fatalf("%s: slots of unit %d: %v, want %v", what, unit, got[at:at+int(named)],
							slots[at:at+int(named)])
					}
				}
				for i := range tables {
					if got := download[int32](g, Ptr(tables[i]), len(r.table[i])); !slices.Equal(got, r.table[i]) {
						t.Fatalf("%s: table of request %d differs", what, i)
					}
				}
				src, dst, at := download[int64](g, a.Src, n), download[int64](g, a.Dst, n), 0
				for round, want := range loads {
					var got [][2]int64
					for i := range want {
						got = append(got, [2]int64{src[at+i], dst[at+i]})
					}
					at += len(want)
					if rounds > 0 { // within a round in any order
						order := func(a, b [2]int64) int { return int(min(1, max(-1, a[1]-b[1]))) }
						slices.SortFunc(got, order)
						slices.SortFunc(want, order)
					}
					if !slices.Equal(got, want) {
						t.Fatalf("%s: loads of round %d differ", what, round)
					}
				}
				// The next call finds some blocks gone.
				var gone []int64
				for unit, named := range r.named {
					row, group := unit/c.heads, r.layer*c.heads+unit%c.heads
					for _, b := range r.list[unit*c.stride:][:named] {
						if g.r.IntN(4) == 0 {
							r.table[row][group*int(r.cap[row])+int(b)] = 0
							gone = append(gone, entry([3]int{row, group, int(b)}))
						}
					}
				}
				if len(gone) > 0 {
					g.must(g.Launch(&TableArgs{Evicted: upload(g, gone), Evictions: int32(len(gone))}, 0))
				}
				r.evicted, a.Evictions = nil, 0
			}
		}
	})
}

// A gather that goes by the caller's count finds an address in every place, though the lookup
// counts other misses.
func TestGPULookupOfAnotherCount(t *testing.T) {
	onGPU(t, func(g *gpu) {
		for _, missing := range []float64{0, 0.1, 0.9} {
			const batch, heads, stride, micro, rounds, places = 3, 32, 40, 4, 10, 17 // of each round
			r := g.residency(batch, heads, stride, micro, missing)
			tables := make([]int64, batch)
			for i := range tables {
				tables[i] = int64(upload(g, r.table[i]))
			}
			before, n := make([]int64, rounds), batch*heads*stride
			for i := range before {
				before[i] = int64(places * i)
			}
			const unset = 1<<62 + 1
			none := slices.Repeat([]int64{unset}, n)
			a := LookupArgs{
				Table: upload(g, tables), Cap: upload(g, r.cap), Page: upload(g, r.page),
				List: upload(g, r.list), Named: upload(g, r.named), Slot: upload(g, make([]int32, n)),
				FreeSlot: upload(g, r.free), Src: upload(g, none), Dst: upload(g, none),
				Loads: upload(g, make([]int64, 1)), Before: upload(g, before), Pool: 7 << 40,
				BlockBytes: residencyBlock, Batch: batch, Heads: heads, Stride: stride, PageStride: stride +
					100, Group: int32(r.layer * heads), Frees: rounds * places, Rounds: rounds, Micro: micro,
			}
			bytes, err := g.Workspace(&a)
			g.must(err)
			a.State = upload(g, make([]byte, bytes))
			g.must(g.Launch(&a, 0))
			g.must(g.DeviceSync())
			if got := download[int64](g, a.Loads, 1)[0]; got > rounds*places {
				t.Errorf("%g missing: the gather loads %d of %d", missing, got, rounds*places)
			}
			src, dst, loads := download[int64](g, a.Src, n), download[int64](g, a.Dst, n), 0
			for i := range n {
				if set := src[i] != unset && dst[i] != unset; set != (i < rounds*places) {
					t.Fatalf("%g missing: place %d of %d is %#x to %#x", missing, i, rounds*places, src[i], dst[i])
				} else if set && src[i] != dst[i] {
					loads++
				}
			}
			if loads == 0 != (missing == 0) {
				t.Errorf("%g missing: %d loads in %d places", missing, loads, rounds*places)
			}
		}
	})
}

// Entries that lose and get slots in one call have them in the end.
func TestGPUTable(t *testing.T) {
	onGPU(t, func(g *gpu) {
		table := make([]int32, 5000)
		for i := range table {
			table[i] = int32(i + 1)
		}
		at := upload(g, table)
		var evicted, entry []int64
		var slot []int32
		for _, i := range g.r.Perm(len(table))[:3000] {
			evicted = append(evicted, int64(at)+4*int64(i))
			table[i] = 0
		}
		for _, i := range g.r.Perm(len(table))[:2000] {
			entry, slot = append(entry, int64(at)+4*int64(i)), append(slot, int32(i+70000))
			table[i] = int32(i + 70001)
		}
		g.must(g.Launch(&TableArgs{Evicted: upload(g, evicted), Entry: upload(g, entry),
			Slot: upload(g, slot), Evictions: 3000, Entries: 2000}, 0))
		g.must(g.DeviceSync())
		if got := download[int32](g, at, len(table)); !slices.Equal(got, table) {
			t.Error("the table differs")
		}
	})
}
