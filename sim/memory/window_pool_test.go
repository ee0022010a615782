package memory

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/sim/prefix"
)

// windowed is a pool of layers some of which have windows.
func windowed(total int64, blockTokens int, l WindowLayers) *Pool {
	p := NewPool(total, blockTokens, 0, nil)
	p.Layers = l
	return p
}

func piece(id uint64, tokens int) prefix.Piece { return prefix.Piece{ID: id, Tokens: tokens} }

func textOf(own uint64, output int, pieces ...prefix.Piece) *Grant {
	g, tokens := &Grant{}, 0
	for _, p := range pieces {
		tokens += p.Tokens
	}
	g.Reset(&prefix.Content{Prompt: pieces}, tokens, tokens, output, own)
	return g
}

// Two layers of whole contexts and four of windows of 32 tokens, in blocks of 16 tokens and two
// layers. A prompt of 160 tokens in steps of 64 keeps ten blocks of whole contexts, and two a 16
// tokens of its window.
func TestWindowPoolByHand(t *testing.T) {
	p := windowed(100, 16, WindowLayers{Full: 1, Windowed: 2, Tokens: 32, Step: 64})
	a := textOf(1, 100, prefix.Piece{ID: 7, Tokens: 160})
	for _, c := range []struct{ tokens, used int }{
		{64, 4 + 2*4},   // all of the step
		{128, 8 + 2*6},  // tokens from 33 on: blocks 2 to 8
		{160, 10 + 2*4}, // tokens from 97 on: blocks 6 to 10
		{161, 11 + 2*3}, // tokens from 129 on
		{176, 11 + 2*3}, // token 162 attends from 131 on
		{177, 12 + 2*3}, // token 177 from 146 on
	} {
		if !p.Grow(a, c.tokens, c.tokens) || p.Used() != int64(c.used) {
			t.Fatalf("%d tokens: %d blocks, want %d", c.tokens, p.Used(), c.used)
		}
	}
	// What has left the window keeps its content until it is evicted.
	whole := textOf(2, 1, prefix.Piece{ID: 7, Tokens: 160}, prefix.Piece{ID: 8, Tokens: 64})
	if hit := p.Match(whole, 224); hit != 160 {
		t.Errorf("hit %d of 160", hit)
	}
	early := textOf(3, 1, prefix.Piece{ID: 7, Tokens: 70}, prefix.Piece{ID: 9, Tokens: 64})
	if hit := p.Match(early, 134); hit != 64 {
		t.Errorf("hit %d of 64 in the middle", hit)
	}
	if p.Release(a, true); p.Used() != 0 {
		t.Errorf("%d blocks left", p.Used())
	}
	if !p.Grow(whole, 224, 224) || p.Used() != 14+2*(2+4) {
		t.Errorf("%d blocks of 224 tokens, a hit of 160", p.Used())
	}
}

// Without the last window of a prefix there is no hit at its end, but one before it whose window is
// there.
func TestWindowPoolNeedsTheLastWindow(t *testing.T) {
	p := windowed(14, 16, WindowLayers{Full: 1, Windowed: 1, Tokens: 17, Step: 16})
	a := textOf(1, 1, prefix.Piece{ID: 7, Tokens: 96})
	for n := 16; n <= 96; n += 16 {
		p.Grow(a, n, n)
	}
	p.Release(a, true) // windows 1 to 4 were freed first, then 6 to 1 of the whole contexts, then 6, 5
	other := textOf(2, 1, prefix.Piece{ID: 8, Tokens: 32})
	p.Match(other, 33)
	p.Grow(other, 16, 16) // two free blocks
	again := func(tokens int) int {
		return p.Match(textOf(3, 1, prefix.Piece{ID: 7, Tokens: tokens}, prefix.Piece{ID: 9, Tokens: 20}),
			tokens+20)
	}
	if hit := again(96); hit != 96 {
		t.Errorf("hit %d of 96", hit)
	}
	p.Grow(other, 32, 32) // evicts windows 1 and 2
	for tokens, want := range map[int]int{96: 96, 64: 64, 48: 48, 32: 0, 16: 0} {
		if hit := again(tokens); hit != want {
			t.Errorf("the first %d tokens: hit %d, want %d", tokens, hit, want)
		}
	}
}

// A request that fits is served alone, in steps, to its end, and at every moment layers with a
// window hold its newest tokens and no more than the step's besides; all layers may have one.
func TestWindowPoolServesWhatFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string, low, high int) int { return rapid.IntRange(low, high).Draw(t, name) }
		l := WindowLayers{Full: draw("full", 0, 3), Windowed: draw("windows", 1, 3),
			Tokens: draw("window", 1, 60), Step: draw("step", 1, 80)}
		size := draw("block", 1, 16)
		p := windowed(int64(draw("total", 1, 400)), size, l)
		p.Unshared = draw("shared", 0, 1) == 0
		prompt, output := draw("prompt", 1, 500), draw("output", 1, 100)
		if !p.Fits(prompt + output) {
			return
		}
		g := textOf(1, output, piece(7, prompt))
		for done := 0; done < prompt+output; {
			before := done
			if done++; done < prompt {
				done = min(prompt, done+l.Step-1)
			}
			if !p.Grow(g, done, done) {
				t.Fatalf("no room for %d of %d tokens", done, prompt+output)
			}
			kept := p.blocks(done) - max(0, before-l.Tokens+1)/size
			if want := p.blocks(done)*l.Full + kept*l.Windowed; p.Used() != int64(want) {
				t.Fatalf("%d tokens after %d take %d blocks, want %d", done, before, p.Used(), want)
			}
			if err := p.Check(slices.Values([]*Grant{g})); err != nil {
				t.Fatal(err)
			}
		}
		if p.Release(g, true); p.Used() != 0 {
			t.Fatalf("%d blocks left", p.Used())
		}
	})
}

// n blocks hold the tokens of the longest request whose layers have it whole, or its window.
func TestWindowPoolTokens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string, low, high int) int { return rapid.IntRange(low, high).Draw(t, name) }
		l := WindowLayers{Full: draw("full", 0, 5), Windowed: draw("windows", 1, 5),
			Tokens: draw("window", 1, 60), Step: 1}
		size, n := draw("block", 1, 16), draw("blocks", 0, 2000)
		p := windowed(0, size, l)
		need := func(rows int) int {
			return l.Full*rows + l.Windowed*min(rows, p.blocks(l.Tokens)+1)
		}
		got := p.Tokens(int64(n))
		if got == math.MaxInt64 {
			if l.Full > 0 || need(n) > n {
				t.Fatalf("%+v: %d blocks hold any number of tokens", l, n)
			}
			return
		}
		if rows := int(got) / size; got%int64(size) > 0 || need(rows) > n || need(rows+1) <= n {
			t.Fatalf("%+v: %d blocks hold %d tokens of %d blocks, one more row takes %d", l, n, got,
				need(rows), need(rows+1))
		}
	})
}

// With windows as long as contexts a pool that evicts nothing hits what a Pool hits, and at every
// moment its blocks are conserved.
func TestWindowPoolOfLongWindowsIsAPool(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		long := windowed(1<<12, 4, WindowLayers{Full: r.IntN(3), Windowed: 1 + r.IntN(3),
			Tokens: 1 << 12, Step: 64})
		pool := NewPool(1<<10, 4, 0, nil)
		live := map[*Grant]*Grant{}
		for i := range 30 {
			pieces := []prefix.Piece{{ID: 1 + r.Uint64N(3), Tokens: 1 + r.IntN(40)},
				{ID: 1 + r.Uint64N(3), Tokens: 1 + r.IntN(40)}}
			a, b := textOf(uint64(i), 8, pieces...), textOf(uint64(i), 8, pieces...)
			n := pieces[0].Tokens + pieces[1].Tokens
			if x, y := long.Match(a, n), pool.Match(b, n); x != y {
				t.Fatalf("seed %d: hit %d, of a pool %d", seed, x, y)
			}
			if !long.Grow(a, n, n) || !pool.Grow(b, n, n) {
				t.Fatal("full")
			}
			live[a] = b
			for x, y := range live {
				if r.IntN(3) == 0 {
					long.Release(x, true)
					pool.Release(y, true)
					delete(live, x)
				}
			}
			if err := long.Check(maps.Keys(live)); err != nil {
				t.Fatal(err)
			}
		}
	}
}
