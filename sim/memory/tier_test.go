package memory

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/prefix"
)

// listed is a tier that keeps its chunks in a slice, oldest first.
type listed struct {
	order    string
	capacity int
	keys     []uint64
	used     map[uint64]bool
	hand     int // of SIEVE, into keys
}

func (l *listed) use(key uint64) {
	if l.order == LRU {
		i := slices.Index(l.keys, key)
		l.keys = append(slices.Delete(l.keys, i, i+1), key)
	}
	l.used[key] = true
}

func (l *listed) put(key uint64) {
	if len(l.keys) == l.capacity {
		l.evict()
	}
	l.keys = append(l.keys, key)
	l.used[key] = false
}

func (l *listed) evict() {
	at := 0
	switch l.order {
	case CLOCK:
		for l.used[l.keys[0]] {
			l.used[l.keys[0]] = false
			l.keys = append(l.keys[1:], l.keys[0])
		}
	case SIEVE:
		for {
			if l.hand == len(l.keys) {
				l.hand = 0
			}
			if !l.used[l.keys[l.hand]] {
				break
			}
			l.used[l.keys[l.hand]] = false
			l.hand++
		}
		if at = l.hand; at == len(l.keys)-1 {
			l.hand = 0
		}
	}
	l.keys = slices.Delete(l.keys, at, at+1)
}

// Tiers of every order by the past keep what one keeps that moves its chunks about in a slice.
func TestTiersEvictInTheirOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		order := rapid.SampledFrom([]string{LRU, FIFO, CLOCK, SIEVE}).Draw(t, "order")
		capacity := rapid.IntRange(1, 8).Draw(t, "capacity")
		tr := newTier(int64(capacity), order)
		want := &listed{order: order, capacity: capacity, used: map[uint64]bool{}}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			key := uint64(rapid.IntRange(1, 14).Draw(t, "key"))
			place := tr.has(key, 0)
			if (place > 0) != slices.Contains(want.keys, key) {
				t.Fatalf("%s: chunk %d is there: %v; the list has %v", order, key, place > 0, want.keys)
			}
			if place > 0 {
				tr.use(place)
				want.use(key)
			} else {
				tr.put(key, 0)
				want.put(key)
			}
		}
	})
}

// tiered is a Pool or a Radix.
type tiered interface {
	Plan(now des.Time)
	Match(g *Grant, target int) int
	Grow(g *Grant, tokens, now int) bool
	Release(g *Grant, ended bool)
	Writes() (dram, ssd int)
	Written(dram, ssd des.Time)
}

// A pool, and a tree, of four blocks of two tokens over tiers of chunks of two blocks serve three
// texts of two chunks, then the first one again.
func TestLowerTiersByHand(t *testing.T) {
	for name, open := range map[string]func(*Lower) tiered{
		"pool": func(l *Lower) tiered { return NewPool(4, 2, 0, l) },
		"tree": func(l *Lower) tiered { return NewRadix(4, 2, 0, l) },
	} {
		t.Run(name, func(t *testing.T) { lowerTiersByHand(t, open) })
	}
}

func lowerTiersByHand(t *testing.T, open func(*Lower) tiered) {
	for _, c := range []struct {
		name             string
		back             bool
		hits             int
		dram, ssd        int64
		tokens, fromSSD  int // that the first text has to load in the end
		written, spilled int // chunks, in all
	}{
		{"write-through", false, 0, 2, 6, 8, 8, 6, 6},
		{"DRAM alone", false, 0, 6, 0, 8, 0, 6, 0},
		{"SSD alone", false, 0, 0, 6, 8, 8, 6, 6},
		{"selective, of which nothing is hit", false, 1, 2, 4, 0, 0, 0, 0},
		{"write-back: the last text is in HBM", true, 0, 2, 4, 8, 8, 4, 2},
	} {
		p := open(&Lower{Chunk: 2, DRAM: c.dram, SSD: c.ssd, Eviction: LRU, Back: c.back, Hits: c.hits})
		at := des.Time(0)
		serve := func(text uint64) Load {
			return serves(t, p, at, 100, prefix.Piece{ID: text, Tokens: 8})
		}
		written, spilled := 0, 0
		for text := range uint64(3) {
			serve(text + 1)
			w, s := p.Writes()
			written, spilled = written+w, spilled+s
			p.Written(at+5, at+5)
			at += 5
		}
		if got := serve(1); got != (Load{c.tokens, c.fromSSD}) {
			t.Errorf("%s: %+v to load, want %d tokens, %d of SSD", c.name, got, c.tokens, c.fromSSD)
		}
		if written != c.written || spilled != c.spilled {
			t.Errorf("%s: %d chunks written and %d on SSD, want %d and %d", c.name, written, spilled,
				c.written, c.spilled)
		}
	}
}

// HBM keeps the first of a text's four blocks, half a chunk: what is loaded begins behind it. DRAM
// for two chunks has the text's second and one of another text.
func TestLoadsContinueWithinAChunk(t *testing.T) {
	for want, l := range map[Load]*Lower{
		{6, 6}: {Chunk: 2, SSD: 6, Eviction: LRU},
		{6, 0}: {Chunk: 2, DRAM: 6, Eviction: LRU},
		{6, 2}: {Chunk: 2, DRAM: 2, SSD: 6, Eviction: LRU},
	} {
		p := NewPool(4, 2, 0, l)
		var got Load
		for i, text := range []prefix.Piece{{ID: 1, Tokens: 8}, {ID: 2, Tokens: 6}, {ID: 1, Tokens: 8}} {
			got = serves(t, p, des.Time(5*i), uint64(100+i), text)
			p.Written(des.Time(5*i+5), des.Time(5*i+5))
		}
		if got != want {
			t.Errorf("%+v is loaded, want %+v", got, want)
		}
	}
}

// HBM has room for one text of two chunks, DRAM for two texts, SSD for all: what was loaded from
// SSD is in DRAM when it is wanted again, without a save. Texts 1, 2 and 3 are written through, and
// DRAM has 2 and 3: 1 comes from SSD and takes the place of 2, which comes from SSD and takes that
// of 3, so that 1 is in DRAM.
//
// Written back, 3 is in HBM alone when 1 is loaded from DRAM, and takes the place of 2 in DRAM,
// which goes to SSD. Then 2 comes back and takes the place of the one that was used first, which
// goes to SSD: in a pool 1, that leaves HBM then and has 3 go as well; in a tree, where to enter is
// a use, 3, and 1 goes when 3 comes back.
func TestLoadsFromSSDStayInDRAM(t *testing.T) {
	type served struct {
		text      uint64
		load      Load
		dram, ssd int // chunks written
	}
	through := []served{{1, Load{}, 2, 2}, {2, Load{}, 2, 2}, {3, Load{}, 2, 2},
		{1, Load{8, 8}, 0, 0}, {2, Load{8, 8}, 0, 0}, {1, Load{8, 0}, 0, 0}, {3, Load{8, 8}, 0, 0}}
	back := []served{{1, Load{}, 0, 0}, {2, Load{}, 2, 0}, {3, Load{}, 2, 0}, {1, Load{8, 0}, 2, 2}}
	for _, c := range []struct {
		name       string
		back, tree bool
		all        []served
	}{
		{"pool", false, false, through},
		{"tree", false, true, through},
		{"pool, back", true, false, append(slices.Clone(back),
			served{2, Load{8, 8}, 2, 4}, served{3, Load{8, 8}, 2, 0}, served{1, Load{8, 8}, 2, 0})},
		{"tree, back", true, true, append(slices.Clone(back),
			served{2, Load{8, 8}, 0, 2}, served{3, Load{8, 8}, 0, 2}, served{1, Load{8, 8}, 0, 0})},
	} {
		l := &Lower{Chunk: 2, DRAM: 4, SSD: 100, Eviction: LRU, Back: c.back}
		var p tiered
		if p = NewPool(4, 2, 0, l); c.tree {
			p = NewRadix(4, 2, 0, l)
		}
		for i, want := range c.all {
			got := served{text: want.text}
			got.load = serves(t, p, des.Time(5*i), uint64(100+i), prefix.Piece{ID: want.text, Tokens: 8})
			got.dram, got.ssd = p.Writes()
			if got != want {
				t.Errorf("%s: %+v, want %+v", c.name, got, want)
			}
			p.Written(des.Time(5*i+5), des.Time(5*i+5))
		}
	}
}

// serves serves a request of a text and one token more, and returns what it loads.
func serves(t *testing.T, p tiered, at des.Time, own uint64, text prefix.Piece) Load {
	t.Helper()
	return servesUpTo(t, p, at, own, text, text.Tokens+1)
}

// servesUpTo serves a text whose hits end before a token, the target.
func servesUpTo(t *testing.T, p tiered, at des.Time, own uint64, text prefix.Piece,
	target int) Load {
	t.Helper()
	var g Grant
	g.Reset(&prefix.Content{Prompt: []prefix.Piece{text}}, target, target, 1, own)
	p.Plan(at)
	p.Match(&g, target)
	load := g.load
	if !p.Grow(&g, text.Tokens, text.Tokens) {
		t.Fatalf("no room at %d", at)
	}
	p.Release(&g, true)
	return load
}

// A chunk is written at its second hit in HBM, and not at later ones, when DRAM has lost it to
// another.
func TestChunksAreWrittenAtOneOfTheirHits(t *testing.T) {
	for name, open := range map[string]func(*Lower) tiered{
		"pool": func(l *Lower) tiered { return NewPool(8, 2, 0, l) },
		"tree": func(l *Lower) tiered { return NewRadix(8, 2, 0, l) },
	} {
		p := open(&Lower{Chunk: 1, DRAM: 1, Eviction: LRU, Hits: 2})
		for i, c := range []struct {
			text    uint64
			written int // chunks
		}{{1, 0}, {2, 0}, {1, 0}, {1, 1}, {2, 0}, {2, 1}, {1, 0}, {2, 0}, {1, 0}} {
			serves(t, p, des.Time(5*i), uint64(100+i), prefix.Piece{ID: c.text, Tokens: 2})
			if dram, _ := p.Writes(); dram != c.written {
				t.Errorf("%s: %d chunks written when text %d comes as request %d, want %d", name, dram,
					c.text, i+1, c.written)
			}
			p.Written(des.Time(5*i+5), des.Time(5*i+5))
		}
	}
}

// A chunk that DRAM has lost and SSD has is written through to DRAM alone where it is computed once
// more, as the last of a prompt is.
func TestChunksAreWrittenToSSDOnce(t *testing.T) {
	for name, open := range map[string]func(*Lower) tiered{
		"pool": func(l *Lower) tiered { return NewPool(1, 2, 0, l) },
		"tree": func(l *Lower) tiered { return NewRadix(1, 2, 0, l) },
	} {
		p := open(&Lower{Chunk: 1, DRAM: 1, SSD: 4, Eviction: LRU})
		for i, c := range []struct {
			text uint64
			ssd  int // chunks
		}{{1, 1}, {2, 1}, {1, 0}, {2, 0}, {3, 1}} {
			load := servesUpTo(t, p, des.Time(5*i), uint64(100+i), prefix.Piece{ID: c.text, Tokens: 2}, 2)
			if dram, ssd := p.Writes(); dram != 1 || ssd != c.ssd || load != (Load{}) {
				t.Errorf("%s: %d and %d chunks written when text %d comes as request %d, want 1 and %d; "+
					"%+v is loaded", name, dram, ssd, c.text, i+1, c.ssd, load)
			}
			p.Written(des.Time(5*i+5), des.Time(5*i+5))
		}
	}
}
