package kv

import (
	"math/rand/v2"
	"testing"

	"github.com/sparseserve/sparseserve/sim/prefix"
)

// hotOf is memory of so many bytes of HBM: blocks of 16 tokens, 1,000 bytes and 10 of metadata,
// buffers of 4 blocks.
func hotOf(hbm, dram int64, keep bool) *Hot {
	return NewHot(HotConfig{DRAM: dram, HBM: hbm, BlockTokens: 16, Block: 1000, Meta: 10, Slots: 4,
		Keep: keep})
}

// admit prefills a request of so many tokens and says whether there was room.
func admit(h *Hot, tokens int) (*prefix.Grant, bool) {
	g := &prefix.Grant{}
	if !h.Admit(g, tokens, tokens) {
		return nil, false
	}
	h.Settle(g)
	return g, true
}

// As many requests decode at once as HBM has buffers and metadata for, next to the last one's
// prefill, or as DRAM has room for.
func TestHotConcurrencyIsArithmetic(t *testing.T) {
	const tokens, blocks = 320, 20
	for _, c := range []struct{ hbm, dram, want int64 }{
		{100_000, 1 << 40, (100_000-blocks*1010)/(4*1000+blocks*10) + 1},
		{100_000, 7*blocks*1000 + 999, 7},
		{blocks*1010 - 1, 1 << 40, 0},
		{blocks * 1010, 1 << 40, 1},
	} {
		h := hotOf(c.hbm, c.dram, false)
		var all []*prefix.Grant
		for {
			g, ok := admit(h, tokens)
			if !ok {
				break
			}
			all = append(all, g)
		}
		if int64(len(all)) != c.want || h.Fits(tokens) != (c.want > 0) {
			t.Errorf("%+v: %d requests, fits %v", c, len(all), h.Fits(tokens))
		}
		for _, g := range all {
			if g.Hot != 4 || h.Whole(g) {
				t.Fatalf("%+v: %d blocks in HBM", c, g.Hot)
			}
			h.Release(g, true)
		}
		if used, _ := h.HBM(); used != 0 || h.Used() != 0 {
			t.Errorf("%+v: %d bytes, %d blocks left", c, used, h.Used())
		}
	}
}

// With Keep the first to settle give their KV up first, as many as are needed; one by itself gives
// up its own.
func TestHotSpillsTheOldest(t *testing.T) {
	h := hotOf(50_000, 1<<40, true)
	a, _ := admit(h, 320)
	b, _ := admit(h, 320)
	if !h.Whole(a) || !h.Whole(b) {
		t.Fatal("two requests of 20 blocks fit 50")
	}
	c, ok := admit(h, 160)
	if !ok || h.Whole(a) || !h.Whole(b) || !h.Whole(c) {
		t.Fatalf("a third: %v, whole %v %v %v", ok, h.Whole(a), h.Whole(b), h.Whole(c))
	}
	h.Release(a, true)
	h.Release(c, true)
	for tokens := 336; tokens <= 16*49; tokens += 16 {
		if !h.Grow(b, tokens) {
			t.Fatalf("no room for %d tokens", tokens)
		}
	}
	if !h.Whole(b) {
		t.Error("49 blocks fit 50,000 bytes")
	}
	if !h.Grow(b, 16*50) || h.Whole(b) || b.Hot != 4 {
		t.Errorf("the 50th block: %d in HBM", b.Hot)
	}
}

// Whatever comes, both tiers hold what requests have, and no more than there is.
func TestHotAccounts(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	for _, keep := range []bool{false, true} {
		h := hotOf(120_000, 200_000, keep)
		var all []*prefix.Grant
		tokens := map[*prefix.Grant]int{}
		for range 5000 {
			switch n := r.IntN(10); {
			case n < 2 || len(all) == 0:
				g := &prefix.Grant{}
				if r.IntN(3) == 0 {
					g.Cached = r.IntN(300)
				}
				if want := 1 + r.IntN(600); h.Admit(g, want, want) {
					all, tokens[g] = append(all, g), want
				}
			case n < 7:
				g := all[r.IntN(len(all))]
				if !g.Settled && r.IntN(2) == 0 {
					h.Settle(g)
				} else if h.Grow(g, tokens[g]+1) {
					tokens[g]++
				}
			default:
				i := r.IntN(len(all))
				h.Release(all[i], r.IntN(2) == 0)
				all = append(all[:i], all[i+1:]...)
			}
			err := h.Check(func(yield func(*prefix.Grant) bool) {
				for _, g := range all {
					if !yield(g) {
						return
					}
				}
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}
