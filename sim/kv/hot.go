package kv

import (
	"fmt"
	"slices"

	"github.com/sparseserve/sparseserve/sim/prefix"
)

// Hot is memory of hot buffers (HiSparse): DRAM holds the KV of all tokens, HBM so many blocks of
// each request that decodes, in every layer, and the selection metadata of all. A request that
// prefills has all that it computes in HBM; when its prefill ends it keeps its buffer (Settle), or
// with Keep all, until HBM runs short of blocks: then blocks leave one by one (hot_reclaim.go).
type Hot struct {
	*Budget // of DRAM

	cfg  HotConfig
	used int64           // bytes of HBM
	kept []*prefix.Grant // with Keep, those that have settled, in that order
}

// HotConfig sizes a Hot.
type HotConfig struct {
	DRAM, HBM   int64 // bytes
	BlockTokens int
	Block, Meta int64 // bytes of a block's KV, and of its metadata, in all layers and KV heads
	Slots       int64 // blocks of a buffer
	Keep        bool
	Watermark   float64 // share of DRAM's blocks that stays free when a request is admitted
}

// NewHot returns empty memory.
func NewHot(cfg HotConfig) *Hot {
	return &Hot{Budget: NewBudget(cfg.DRAM/cfg.Block, cfg.BlockTokens, cfg.Watermark), cfg: cfg}
}

// Fits says whether a request of that many tokens could ever be admitted: it may have to prefill
// all of them again.
func (h *Hot) Fits(tokens int) bool {
	return h.Budget.Fits(tokens) && h.bytes(h.blocks(tokens), h.blocks(tokens)) <= h.cfg.HBM
}

// bytes of HBM of a request with so many blocks, so many of them there.
func (h *Hot) bytes(blocks, hot int64) int64 { return blocks*h.cfg.Meta + hot*h.cfg.Block }

// HBM returns the bytes in use and in all.
func (h *Hot) HBM() (used, total int64) { return h.used, h.cfg.HBM }

// Admit grants both tiers for the given tokens if DRAM's watermark remains free.
func (h *Hot) Admit(g *prefix.Grant, tokens, now int) bool {
	before := g.Blocks
	return h.Budget.Admit(g, tokens, now) && h.hold(g, before)
}

// Grow extends a grant in both tiers.
func (h *Hot) Grow(g *prefix.Grant, tokens int) bool {
	before := g.Blocks
	return h.Budget.Grow(g, tokens) && h.hold(g, before)
}

// Room reports whether both tiers would extend a grant to the given tokens. With Keep HBM is no
// limit, because blocks leave it one by one.
func (h *Hot) Room(g *prefix.Grant, tokens int) bool {
	grown := *g
	grown.Blocks = h.blocks(tokens)
	need := h.bytes(grown.Blocks-g.Blocks, h.wants(&grown)-g.Hot)
	return h.Budget.Room(g, tokens) && (h.cfg.Keep || h.used+need <= h.cfg.HBM)
}

// hold takes the HBM of a grant that had fewer blocks before, or gives their DRAM back.
func (h *Hot) hold(g *prefix.Grant, before int64) bool {
	for {
		hot := h.wants(g)
		need := h.bytes(g.Blocks-before, hot-g.Hot)
		short := h.used + need - h.cfg.HBM
		if short <= 0 {
			h.used += need
			g.Hot = hot
			return true
		}
		switch {
		case before == 0 && h.arrives(g):
		case !h.reclaim(short, g):
			h.Budget.used -= g.Blocks - before
			if g.Blocks = before; before == 0 {
				g.Gone = 0
			}
			return false
		}
	}
}

// arrives has the blocks that a new grant has from elsewhere stay in DRAM, once, where that saves
// HBM: with Keep they come to HBM only where there is room.
func (h *Hot) arrives(g *prefix.Grant) bool {
	cached := min(g.Blocks, int64(g.Cached/h.cfg.BlockTokens))
	if !h.cfg.Keep || g.Gone > 0 || cached <= h.cfg.Slots {
		return false
	}
	g.Gone = cached
	return true
}

// wants is how many blocks of a grant are in HBM: its buffer, or all that it computes. Of what it
// has from elsewhere, which is in DRAM, it selects; with Keep that comes to HBM too if it can.
func (h *Hot) wants(g *prefix.Grant) int64 {
	cached := int64(g.Cached / h.cfg.BlockTokens)
	switch {
	case g.Settled && !g.Kept:
		return min(g.Blocks, h.cfg.Slots)
	case g.Gone > 0:
		return g.Blocks - g.Gone + h.cfg.Slots
	case cached > 0 && !h.cfg.Keep:
		return min(g.Blocks, max(0, g.Blocks-cached)+h.cfg.Slots)
	}
	return g.Blocks
}

// shrink gives back what a grant has in HBM beyond what it wants.
func (h *Hot) shrink(g *prefix.Grant) {
	hot := min(g.Hot, h.wants(g))
	h.used -= h.bytes(0, g.Hot-hot)
	g.Hot = hot
}

// Settle ends a grant's prefill.
func (h *Hot) Settle(g *prefix.Grant) {
	g.Settled = true
	if h.cfg.Keep {
		g.Kept = true
		h.kept = append(h.kept, g)
		return
	}
	h.shrink(g)
}

// Buffered says whether a grant that decodes looks its selection up in a buffer.
func (h *Hot) Buffered(g *prefix.Grant) bool { return !g.Kept || g.Gone > 0 }

// Eighths returns how much of a grant's context its buffer serves, from the first block on, rounded
// up to eighths.
func (h *Hot) Eighths(g *prefix.Grant) int {
	if !g.Kept {
		return 8
	}
	return int((8*g.Gone + g.Blocks - 1) / g.Blocks)
}

// Whole says whether all KV of a grant is in HBM.
func (h *Hot) Whole(g *prefix.Grant) bool { return g.Hot == g.Blocks }

// Release returns a grant.
func (h *Hot) Release(g *prefix.Grant, ended bool) {
	if i := slices.Index(h.kept, g); i >= 0 {
		h.kept = slices.Delete(h.kept, i, i+1)
	}
	h.used -= h.bytes(g.Blocks, g.Hot)
	h.Budget.Release(g, ended)
	g.Hot, g.Gone, g.Settled, g.Kept = 0, 0, false, false
}

// Check verifies that the grants hold what is in use, within both tiers.
func (h *Hot) Check(grants func(yield func(*prefix.Grant) bool)) error {
	var blocks, bytes int64
	var err error
	for g := range grants {
		blocks += g.Blocks
		bytes += h.bytes(g.Blocks, g.Hot)
		if want := h.wants(g); g.Hot != want {
			err = fmt.Errorf("a request of %d blocks has %d in HBM, not %d", g.Blocks, g.Hot, want)
		}
	}
	switch {
	case err != nil:
	case bytes != h.used || h.used > h.cfg.HBM:
		err = fmt.Errorf("%d bytes of HBM used of %d, requests hold %d", h.used, h.cfg.HBM, bytes)
	case blocks != h.Budget.used || blocks > h.total:
		err = fmt.Errorf("%d blocks of DRAM used of %d, requests hold %d", h.Budget.used, h.total, blocks)
	}
	return err
}
