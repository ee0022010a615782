package memory

import (
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/sim/prefix"
)

// A block that is freed while it is saved is not reused until the save has ended, and is found
// then.
func TestLawBlocksAreHeldWhileTheyAreSaved(t *testing.T) {
	const size = 4
	p := NewPool(8, size, 0, nil)
	p.Late = true
	content := &prefix.Content{Prompt: []prefix.Piece{{ID: 7, Tokens: 20}}}
	open := func(own uint64) *Grant {
		g := &Grant{}
		g.Reset(content, 20, 20, 4, own)
		return g
	}
	check := func(grants ...*Grant) {
		t.Helper()
		if err := p.Check(slices.Values(grants)); err != nil {
			t.Fatal(err)
		}
	}
	first := open(1)
	p.Match(first, 20)
	if !p.Admit(first, 20, 20) {
		t.Fatal("five of eight blocks are not granted")
	}
	p.enter(first)
	p.Save(first, 2, 6)
	p.Save(first, 4, 7)
	was := slices.Clone(first.Blocks())
	p.Release(first, true)
	check(first)
	if got := p.Used(); got != 3 {
		t.Fatalf("%d blocks are held, three are being saved", got)
	}
	second := open(2)
	if hit := p.Match(second, 20); hit != size {
		t.Errorf("%d tokens hit before the save has ended, want one block", hit)
	}
	if !p.Admit(second, 20, 20) {
		t.Fatal("five of five blocks are not granted")
	}
	for _, b := range second.Blocks()[1:] {
		if slices.Contains(was[1:4], b) {
			t.Errorf("block %d is granted while it is saved", b)
		}
	}
	check(first, second)
	if p.Saved(6); p.Used() != 7 {
		t.Errorf("%d of 8 blocks are held, the save of two has not ended", p.Used())
	}
	p.Release(second, true)
	if p.Saved(7); p.Used() != 0 {
		t.Errorf("%d blocks are held by nobody", p.Used())
	}
	check(first, second)
	third := open(3)
	if hit := p.Match(third, 20); hit != 4*size {
		t.Errorf("%d tokens hit, four blocks are saved", hit)
	}
	if !p.Admit(third, 20, 20) || !slices.Equal(third.Blocks()[:4], was[:4]) {
		t.Errorf("blocks %v, want %v and one more", third.Blocks(), was[:4])
	}
	check(first, second, third)
}

// Giving blocks up while they are saved allocates nothing in steady state.
func TestHeldBlocksAllocateNothing(t *testing.T) {
	p := NewPool(64, 4, 0, nil)
	p.Late = true
	g, step := &Grant{}, int64(0)
	g.Reset(&prefix.Content{Prompt: []prefix.Piece{{ID: 7, Tokens: 40}}}, 40, 40, 4, 1)
	if n := testing.AllocsPerRun(20, func() {
		p.Match(g, 40)
		p.Admit(g, 40, 40)
		step++
		p.Save(g, 10, step)
		p.Release(g, true)
		p.Saved(step)
	}); n > 0 {
		t.Errorf("%g allocations a request", n)
	}
}

// A block whose chunk is being saved to a tier below is not reused until the save has ended,
// whether it is written as it is computed or as it is hit, nor is any other of a request that has
// ended: the end of its text is to be lost first. One that is preempted gives up what is not saved.
func TestLawBlocksAreHeldWhileTheirChunksAreSaved(t *testing.T) {
	for _, c := range []struct {
		hits  int
		ended bool
		held  int64
	}{{0, true, 5}, {1, true, 5}, {0, false, 4}} {
		hits := c.hits
		const size, chunk = 4, 2
		p := NewPool(6, size, 0, &Lower{Chunk: chunk, DRAM: 4, Eviction: LRU, Hits: hits})
		content := &prefix.Content{Prompt: []prefix.Piece{{ID: 7, Tokens: 20}}}
		var grants []*Grant
		open := func(tokens int) *Grant {
			g := &Grant{}
			g.Reset(content, 20, tokens, 4, uint64(len(grants)))
			grants = append(grants, g)
			p.Plan(10)
			p.Match(g, tokens)
			if !p.Admit(g, tokens, tokens) {
				t.Fatalf("%d tokens are not granted in %d free blocks", tokens, 6-p.Used())
			}
			return g
		}
		check := func(used int64) {
			t.Helper()
			if err := p.Check(slices.Values(grants)); err != nil {
				t.Fatal(err)
			}
			if got := p.Used(); got != used {
				t.Fatalf("%d hits: %d blocks are held, want %d", hits, got, used)
			}
		}
		g := open(20)
		if hits > 0 {
			check(5)
			p.Release(g, true)
			check(0)
			g = open(20)
		}
		if dram, _ := p.Writes(); dram != 2 {
			t.Fatalf("%d chunks are written, want 2", dram)
		}
		p.Release(g, c.ended)
		check(c.held) // of two chunks of two blocks and one more
		p.Written(30, 30)
		if at, ok := p.Kept(); !ok || at != 30 {
			t.Errorf("blocks are free at %v, %v", at, ok)
		}
		p.Plan(29)
		check(c.held)
		p.Plan(30)
		check(0)
		if !c.ended {
			continue
		}
		other := &Grant{} // takes the block without content and two of the text's
		other.Reset(nil, 0, 3*size, 4, 99)
		p.Match(other, 3*size)
		again := &Grant{}
		again.Reset(content, 20, 20, 4, 100)
		p.Match(again, 20)
		whole := slices.Clone(again.match)
		if !p.Admit(other, 3*size, 3*size) {
			t.Fatal("three blocks are not granted")
		}
		if p.Match(again, 20); !slices.Equal(again.match, whole[:3]) {
			t.Errorf("%d hits: of blocks %v are left %v", hits, whole, again.match)
		}
	}
}

// A request that ends while its chunks are saved gives up the blocks of windowed layers too.
func TestLawWindowsAreReleasedAfterSaves(t *testing.T) {
	p := NewPool(100, 4, 0, &Lower{Chunk: 2, DRAM: 4, Eviction: LRU})
	p.Layers = WindowLayers{Full: 1, Windowed: 2, Tokens: 8, Step: 40}
	g := textOf(1, 4, piece(7, 20))
	p.Plan(10)
	p.Match(g, 20)
	if !p.Admit(g, 20, 20) {
		t.Fatal("20 tokens are not granted in 100 free blocks")
	}
	if dram, _ := p.Writes(); dram == 0 {
		t.Fatal("no chunk is written")
	}
	p.Release(g, true)
	if p.Written(30, 30); p.Used() == 0 {
		t.Error("no block is held while its chunk is saved")
	}
	if p.Plan(30); p.Used() != 0 {
		t.Errorf("%d blocks are held by nobody", p.Used())
	}
}
