package memory

import (
	"math/rand/v2"
	"testing"
)

// hotOf is memory with the given bytes of HBM: blocks of 16 tokens, 1,000 bytes and 10 of metadata,
// buffers of 4 blocks.
func hotOf(hbm, dram int64, keep bool) *Hot {
	pool := NewPool(dram/1000, 16, 0, nil)
	pool.Unshared = true
	return NewHot(HotConfig{HBM: hbm, Block: 1000, Meta: 10, Slots: 4, Keep: keep}, pool)
}

// admit prefills a request of n tokens and reports whether there was room.
func admit(h *Hot, tokens int) (*Grant, bool) {
	g := &Grant{}
	if !h.Admit(g, tokens, tokens) {
		return nil, false
	}
	h.Settle(g)
	return g, true
}

// As many requests decode at once as HBM has buffers and metadata for, next to the last one's
// prefill, or as DRAM has room for, whether blocks leave HBM at once or one by one.
func TestHotConcurrencyIsArithmetic(t *testing.T) {
	const tokens, blocks = 320, 20
	for _, c := range []struct{ hbm, dram, want int64 }{
		{100_000, 1 << 40, (100_000-blocks*1010)/(4*1000+blocks*10) + 1},
		{100_000, 7*blocks*1000 + 999, 7},
		{blocks*1010 - 1, 1 << 40, 0},
		{blocks * 1010, 1 << 40, 1},
	} {
		for _, keep := range []bool{false, true} {
			fill(t, hotOf(c.hbm, c.dram, keep), tokens, c.want)
		}
	}
}

// fill admits as many requests as there is room for, and releases them.
func fill(t *testing.T, h *Hot, tokens int, want int64) {
	var all []*Grant
	for {
		g, ok := admit(h, tokens)
		if !ok {
			break
		}
		all = append(all, g)
	}
	if int64(len(all)) != want || h.Fits(tokens) != (want > 0) {
		t.Errorf("%+v: %d requests, want %d, fits %v", h.cfg, len(all), want, h.Fits(tokens))
	}
	for _, g := range all {
		if !h.cfg.Keep && g.hot != 4 || h.Whole(g) != (g.hot == g.all) {
			t.Fatalf("%+v: %d blocks in HBM", h.cfg, g.hot)
		}
		h.Release(g, true)
	}
	if used, _ := h.HBM(); used != 0 || h.Used() != 0 {
		t.Errorf("%+v: %d bytes, %d blocks left", h.cfg, used, h.Used())
	}
}

// With Keep the request that has most blocks in HBM gives up the needed blocks, and the blocks for
// its buffer; one by itself gives up its own.
func TestHotSpillsBlockByBlock(t *testing.T) {
	h := hotOf(50_000, 1<<40, true)
	a, _ := admit(h, 320)
	b, _ := admit(h, 336)
	if !h.Whole(a) || !h.Whole(b) || h.Buffered(b) {
		t.Fatal("two requests of 20 and 21 blocks fit 50")
	}
	c, ok := admit(h, 160) // 51 blocks: 1,510 bytes short, two blocks for the third, four for a buffer
	if !ok || !h.Whole(a) || !h.Whole(c) || b.gone != 6 || b.hot != 21-6+4 || h.Eighths(b) != 3 {
		t.Fatalf("a third: %v, %+v %+v %+v", ok, a, b, c)
	}
	if d, ok := admit(h, 16); !ok || a.gone != 5 || b.gone != 6 || d.hot != 1 {
		t.Fatalf("a fourth: %v, %+v %+v", ok, a, b)
	}
	// 20 of 21 blocks are in DRAM, and there is no room for them
	e := &Grant{Cached: 320}
	if !h.Admit(e, 336, 336) || e.gone != 20 || e.hot != 1+4 {
		t.Errorf("of a prompt that was prefilled elsewhere: %+v", e)
	}
	h.Release(a, true)
	h.Release(c, true)
	if a.gone != 0 || h.Whole(b) {
		t.Errorf("released %+v, blocks came back to %+v", a, b)
	}
	h = hotOf(50_000, 1<<40, true)
	b, _ = admit(h, 16*49)
	if !h.Whole(b) || !h.Grow(b, 16*50, 16*50) || h.Whole(b) || b.gone != 5 || b.hot != 49 {
		t.Errorf("the 50th block: %+v", b)
	}
}

// Whatever comes, both tiers hold what requests have, and no more than there is.
func TestHotAccounts(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	for _, keep := range []bool{false, true} {
		h := hotOf(120_000, 200_000, keep)
		var all []*Grant
		tokens := map[*Grant]int{}
		for range 5000 {
			before := gone(all)
			switch n := r.IntN(10); {
			case n < 2 || len(all) == 0:
				g := &Grant{}
				if r.IntN(3) == 0 {
					g.Cached = r.IntN(300)
				}
				if want := 1 + r.IntN(600); h.Admit(g, want, want) {
					all, tokens[g] = append(all, g), want
				}
			case n < 7:
				g := all[r.IntN(len(all))]
				if !g.settled && r.IntN(2) == 0 {
					h.Settle(g)
				} else if h.Grow(g, tokens[g]+1, tokens[g]+1) {
					tokens[g]++
				}
			default:
				i := r.IntN(len(all))
				h.Release(all[i], r.IntN(2) == 0)
				all = append(all[:i], all[i+1:]...)
			}
			if used, total := h.HBM(); gone(all) > before && total-used >= h.cfg.Block {
				t.Fatalf("%d bytes of HBM are free, and blocks left it", total-used)
			}
			err := h.Check(func(yield func(*Grant) bool) {
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

// gone is how many blocks of requests have left HBM that had all there.
func gone(all []*Grant) (n int64) {
	for _, g := range all {
		if g.Cached == 0 {
			n += g.gone
		}
	}
	return n
}
