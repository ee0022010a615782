package kv

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// sharers is a script of requests that share prefixes, and a naive model of what they share:
// each block of a request is a content, of its own or of those with the same key.
type sharers struct {
	*script
	content map[int][]int // by request, block
	named   map[uint64]int
	users   map[uint64]int
	next    int
}

func keyOf(family, block int) uint64 { return uint64(family*1000 + block + 1) }

// open begins a request of a family, with a hit on the family's blocks in DRAM.
func (x *sharers) open() {
	id, family := x.script.next, rapid.IntRange(0, 1).Draw(x.t, "family")
	x.script.next++
	chunked, least, most := rapid.Bool().Draw(x.t, "chunked"), 60, 120
	if chunked { // it is all in HBM
		least, most = 16, 28
	}
	prompt := rapid.IntRange(least, most).Draw(x.t, "prompt")
	hit := rapid.IntRange(0, (prompt-1)/4).Draw(x.t, "hit")
	s := x.c.Open(prompt + 80)
	var keys []uint64
	for b := range prompt / 4 {
		keys = append(keys, keyOf(family, b))
	}
	known := rapid.IntRange(0, hit).Draw(x.t, "keys of the hit")
	x.c.Adopt(s, hit, keys[:known])
	for b := range prompt/4 + 40 {
		c, shared := x.named[keyOf(family, b)]
		if b >= known || !shared {
			x.next++
			c = x.next
		}
		x.content[id] = append(x.content[id], c)
	}
	x.seqs[id], x.tokens[id], x.prev[id] = s, prompt, make([][]uint16, x.c.Geo.Groups())
	if chunked {
		x.chunk(id, prompt)
	} else {
		x.c.Extend(s, prompt)
		if err := x.c.Segmented(s); err != nil {
			x.t.Fatal(err)
		}
	}
	x.c.Name(s, keys)
	for b, key := range keys {
		c := x.content[id][b]
		if _, taken := x.named[key]; !taken {
			x.named[key] = c
		}
		if x.named[key] == c {
			x.users[key]++
		}
	}
}

// chunk prefills in one chunk, whose prefix must be in HBM.
func (x *sharers) chunk(id, prompt int) {
	s := x.seqs[id]
	hit := s.blocks
	x.c.Extend(s, prompt)
	x.c.BeginStep(nil)
	s.Pin(0)
	for _, l := range x.c.layers {
		was, want := x.physical(), 0
		for g := l.From; g < l.To; g++ {
			for b := range hit {
				if !was[[2]int{x.content[id][b], g}] {
					want++
				}
			}
		}
		before := x.c.stats.Resumed
		x.c.Write(l, s)
		loads, err := x.c.Fill(l)
		if err != nil {
			x.t.Fatal(err)
		}
		if int(loads) != want || int(x.c.stats.Resumed-before) != want {
			x.t.Fatalf("a chunk loads %d blocks, %d of them counted, want %d", loads,
				x.c.stats.Resumed-before, want)
		}
	}
	x.c.Saved(s, s.full)
	x.c.Unpin(s)
}

func (x *sharers) free(id int) {
	x.c.Free(x.seqs[id])
	for key, c := range x.named {
		if b := int(key-1) % 1000; b < len(x.content[id]) && x.content[id][b] == c {
			if x.users[key]--; x.users[key] == 0 {
				delete(x.users, key)
				delete(x.named, key)
			}
		}
	}
	delete(x.seqs, id)
	delete(x.content, id)
}

// physical is what HBM holds, by content and group.
func (x *sharers) physical() map[[2]int]bool {
	m := map[[2]int]bool{}
	for key := range x.residents() {
		m[[2]int{x.content[key[0]][key[2]], key[1]}] = true
	}
	return m
}

// decode runs a step; each content that is selected and not in HBM is loaded once.
func (x *sharers) decode(ids []int) {
	var batch []*Seq
	for _, id := range ids {
		x.tokens[id]++
		x.c.Extend(x.seqs[id], x.tokens[id])
		batch = append(batch, x.seqs[id])
	}
	x.c.BeginStep(batch)
	for _, l := range x.c.layers {
		was, used, miss := x.physical(), map[[2]int]bool{}, 0
		var sels []Selection
		for _, id := range ids {
			s := x.seqs[id]
			for g := l.From; g < l.To; g++ {
				sel := Selection{Sinks: 1, Tail: s.blocks - 1}
				x.pick(id, g, s.blocks-2, 3, &sel)
				for b := range s.blocks {
					in := b < sel.Sinks || b >= sel.Tail || slices.Contains(sel.Next, uint16(b-sel.Sinks))
					key := [2]int{x.content[id][b], g}
					if !in || used[key] {
						continue
					}
					if used[key] = true; !was[key] && b < int(s.groups[g].blocks) {
						miss++
					}
				}
				sels = append(sels, sel)
			}
		}
		x.access(l, batch, sels)
		loads, err := x.c.Fill(l)
		if err != nil {
			x.t.Fatal(err)
		}
		if int(loads) != miss || x.c.addressed && len(x.c.Refs()) != miss {
			x.t.Fatalf("layer %d loads %d blocks, names %d, want %d", l.index, loads, len(x.c.Refs()), miss)
		}
		sum := int64(0)
		for _, n := range x.c.Rounds() {
			sum += n
		}
		if sum > loads {
			x.t.Fatalf("%d candidates loaded of %d loads", sum, loads)
		}
		now := x.physical()
		for key := range used {
			if !now[key] {
				x.t.Fatalf("%v is used and not in HBM", key)
			}
		}
		if err := x.c.Check(); err != nil {
			x.t.Fatal(err)
		}
	}
	for _, id := range ids {
		x.c.Saved(x.seqs[id], x.seqs[id].full)
	}
}

// Laws 1 and 3 with shared prefixes, under every order of eviction: a block that several requests
// have is in HBM once, is loaded once, and leaves with the last request.
func TestLaw1SharedBlocks(t *testing.T) {
	for _, order := range []string{LRU, FIFO, CLOCK, SIEVE, ByScore} {
		t.Run(order, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { testShared(t, order) })
		})
	}
}

func testShared(t *rapid.T, order string) {
	cfg := Config{Eviction: order, Addressed: rapid.Bool().Draw(t, "addressed"),
		Microbatch: rapid.IntRange(0, 2).Draw(t, "microbatch"),
		PerLayer:   rapid.Bool().Draw(t, "per layer"),
		Score:      func(_ *Seq, g, b int) float32 { return float32((g*7 + b*5) % 13) }}
	x := &sharers{script: newScript(t, cfg), content: map[int][]int{}, named: map[uint64]int{},
		users: map[uint64]int{}}
	for range rapid.IntRange(10, 40).Draw(t, "ops") {
		var ids []int
		for id := range x.seqs {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		switch op := rapid.IntRange(0, 5).Draw(t, "op"); {
		case op == 0 && len(ids) < 3 || len(ids) == 0:
			x.open()
		case op == 1:
			x.free(ids[rapid.IntRange(0, len(ids)-1).Draw(t, "free")])
		default:
			x.decode(slices.DeleteFunc(ids, func(int) bool { return rapid.Bool().Draw(t, "out") }))
		}
		if err := x.c.Check(); err != nil {
			t.Fatal(err)
		}
	}
	for id := range x.seqs {
		x.free(id)
	}
	if err := x.c.Check(); err != nil {
		t.Fatal(err)
	}
	for i := range x.c.pools {
		if x.c.pools[i].used != 0 || x.c.shares.live != 0 || len(x.c.shares.known) != 0 {
			t.Fatalf("%d blocks, %d shared, %d known are left after all are freed", x.c.pools[i].used,
				x.c.shares.live, len(x.c.shares.known))
		}
	}
}
