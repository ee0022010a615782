package emulator

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
)

// wrongCount is one unit of eight listed blocks, some of them missing, whose
// caller counts other misses.
type wrongCount struct {
	rounds  int32
	missing []int32
	before  []int64 // of each round; nil: not progressive
	frees   int32
	// that the gather finds, from 0 to frees; a block's number, or -1 of a slot that is copied to
	// itself
	src   []int64
	loads int64
}

// A gather finds an address that is good to read and to write in every place that
// it may use, whatever the caller has counted.
func TestLookupOfAnotherCount(t *testing.T) {
	const self = -1
	for name, c := range map[string]wrongCount{
		"as counted": {missing: []int32{1, 4}, frees: 2, src: []int64{1, 4}, loads: 2},
		"fewer":      {missing: []int32{1}, frees: 3, src: []int64{1}, loads: 1},
		"more":       {missing: []int32{1, 4, 5}, frees: 2, src: []int64{1, 4}, loads: 2},
		"in rounds": {rounds: 2, missing: []int32{1, 4}, before: []int64{0, 1}, frees: 2,
			src: []int64{1, 4}, loads: 2},
		"in rounds, fewer": {rounds: 2, missing: []int32{4}, before: []int64{0, 2}, frees: 4,
			src: []int64{self, self, 4, self}, loads: 1},
		"in rounds, none": {rounds: 2, before: []int64{0, 1}, frees: 2, src: []int64{self, self}},
		"in rounds, more": {rounds: 2, missing: []int32{1, 2, 4, 5}, before: []int64{0, 1},
			frees: 2, src: []int64{1, self}, loads: 2},
		"in rounds, misplaced": {rounds: 2, missing: []int32{1, 2, 3, 4}, before: []int64{0, 1},
			frees: 4, src: []int64{1, 4, self, self}, loads: 4},
		"in rounds, all in one": {rounds: 2, missing: []int32{4, 5, 6}, before: []int64{0, 0}, frees: 3,
			src: []int64{4, 5, 6}, loads: 3},
	} {
		t.Run(name, func(t *testing.T) {
			g := newFixture(t, Config{})
			a, err := c.run(g, c.rounds)
			g.must(err)
			const free = 100
			src, dst := download[int64](g, a.Src, int(c.frees)), download[int64](g, a.Dst, int(c.frees))
			for i, want := range c.src {
				from, to := int64(pageBase+want*16), int64(poolBase)+16*int64(free+i)
				if want == self {
					from, to = poolBase+16*free, poolBase+16*free
				}
				if c.before != nil && want != self { // slots follow lists, places rounds
					to = poolBase + 16*int64(free+slices.Index(c.missing, int32(want)))
				}
				if src[i] != from || dst[i] != to {
					t.Errorf("place %d: %#x to %#x, want %#x to %#x", i, src[i], dst[i], from, to)
				}
			}
			if got := download[int64](g, a.Loads, 1)[0]; got != c.loads {
				t.Errorf("the gather loads %d, want %d", got, c.loads)
			}
			if got := download[int64](g, a.Misses, 1)[0]; got != int64(len(c.missing)) {
				t.Errorf("%d misses counted, want %d", got, len(c.missing))
			}
			for i, slot := range download[int32](g, a.Slot, 8) {
				if slot < 0 || slot >= free+c.frees {
					t.Errorf("entry %d has slot %d", i, slot)
				}
			}
		})
	}
}

// A list that goes on for more rounds than the caller has is an error.
func TestLookupBeyondItsRounds(t *testing.T) {
	c := &wrongCount{missing: []int32{5}, before: []int64{0}, frees: 1}
	_, err := c.run(newFixture(t, Config{}), 1)
	if !errors.Is(err, cuda.Failed) || !strings.Contains(err.Error(), "round 1 of 1") {
		t.Errorf("error %v", err)
	}
}

const (
	pageBase = 1 << 30
	poolBase = 1 << 31
)

func (c *wrongCount) run(g *fixture, rounds int32) (*cuda.LookupArgs, error) {
	table, list, pages, free := make([]int32, 8), make([]int32, 8), make([]int64, 8), []int32{}
	for i := range table {
		table[i], list[i], pages[i] = int32(i+1), int32(i), pageBase+16*int64(i)
	}
	for _, i := range c.missing {
		table[i] = 0
	}
	for i := range c.frees {
		free = append(free, 100+i)
	}
	garbage := slices.Repeat([]int64{0x666}, 8)
	a := &cuda.LookupArgs{
		Table: upload(g, []int64{int64(upload(g, table))}), Cap: upload(g, []int32{8}),
		Page: upload(g, pages), List: upload(g, list), Named: upload(g, []int32{8}),
		Slot: upload(g, slices.Repeat([]int32{-7}, 8)), FreeSlot: upload(g, free),
		Src: upload(g, garbage), Dst: upload(g, garbage), Loads: upload(g, []int64{-1}),
		Misses: upload(g, []int64{-1}), Pool: poolBase, BlockBytes: 16, Batch: 1, Heads: 1, Stride: 8,
		PageStride: 8, Frees: c.frees, Rounds: rounds, Micro: 4,
	}
	if c.before != nil {
		a.Before = upload(g, c.before)
	}
	bytes, err := g.Workspace(a)
	g.must(err)
	a.State = upload(g, make([]byte, bytes))
	if err := g.Launch(a, 0); err != nil {
		return a, err
	}
	return a, g.DeviceSync()
}
