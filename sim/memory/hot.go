package memory

import (
	"fmt"
	"iter"
	"slices"
)

// Hot is memory with hot buffers (HiSparse). DRAM holds the KV of all tokens. For each decoding
// request HBM holds a buffer of Slots blocks in every layer and the selection metadata of all
// blocks. A prefilling request has in HBM all blocks that it attends to, also those that hit a
// prefix cache in DRAM. When its prefill ends (Settle), only its buffer remains. With Keep all
// blocks remain until HBM runs short; then blocks leave one at a time (hot_reclaim.go).
type Hot struct {
	*Pool // of DRAM

	cfg  HotConfig
	used int64    // bytes of HBM
	kept []*Grant // with Keep, settled grants in order of settling
}

// HotConfig sizes a Hot.
type HotConfig struct {
	HBM         int64 // bytes
	Block, Meta int64 // bytes of a block's KV, and of its metadata, in all layers and KV heads
	Slots       int64 // blocks per buffer
	Keep        bool
}

// NewHot returns empty memory over DRAM.
func NewHot(cfg HotConfig, dram *Pool) *Hot { return &Hot{Pool: dram, cfg: cfg} }

// Fits reports whether a request of the given number of tokens could ever be admitted. It may
// have to recompute all tokens in a prefill.
func (h *Hot) Fits(tokens int) bool {
	return h.Pool.Fits(tokens) && h.bytes(h.blocks(tokens), h.blocks(tokens)) <= h.cfg.HBM
}

func (h *Hot) blocks(tokens int) int64 { return int64(h.Pool.blocks(tokens)) }

// bytes returns the HBM bytes of a request with the given blocks, hot of which are in HBM.
func (h *Hot) bytes(blocks, hot int64) int64 { return blocks*h.cfg.Meta + hot*h.cfg.Block }

// HBM returns the used and the total HBM bytes.
func (h *Hot) HBM() (used, total int64) { return h.used, h.cfg.HBM }

// Admit grants both tiers for the given tokens if DRAM's watermark remains free.
func (h *Hot) Admit(g *Grant, tokens, now int) bool { return h.extend(g, tokens, now, h.watermark) }

// Grow extends a grant in both tiers.
func (h *Hot) Grow(g *Grant, tokens, now int) bool { return h.extend(g, tokens, now, 0) }

// Room reports whether both tiers have room to extend a grant to the given tokens. With Keep
// HBM is no limit, because its blocks can be reclaimed.
func (h *Hot) Room(g *Grant, tokens int) bool {
	all := h.blocks(tokens)
	need := h.bytes(all-g.all, h.wants(g, all)-g.hot)
	return h.Pool.Room(g, tokens) && (h.cfg.Keep || h.used+need <= h.cfg.HBM)
}

// extend takes HBM and DRAM for a grant that grows to the given tokens, if DRAM keeps blocks free.
func (h *Hot) extend(g *Grant, tokens, now, keep int) bool {
	before := g.all
	g.all = max(before, h.blocks(tokens))
	if h.remain(g, tokens) < keep || !h.hold(g, before) {
		g.all = before
		return false
	}
	return h.grant(g, tokens, now, keep)
}

// hold allocates HBM for a grant that grew from before blocks.
func (h *Hot) hold(g *Grant, before int64) bool {
	for {
		hot := h.wants(g, g.all)
		need := h.bytes(g.all-before, hot-g.hot)
		short := h.used + need - h.cfg.HBM
		if short <= 0 {
			h.used += need
			g.hot = hot
			return true
		}
		switch {
		case before == 0 && h.arrives(g):
		case !h.reclaim(short, g):
			if before == 0 {
				g.gone = 0
			}
			return false
		}
	}
}

// arrives keeps the cached blocks of a new grant in DRAM if this saves HBM, and reports whether
// it did. It applies once per grant. With Keep cached blocks enter HBM only if there is room.
func (h *Hot) arrives(g *Grant) bool {
	cached := min(g.all, int64(g.Cached/h.blockTokens))
	if !h.cfg.Keep || g.gone > 0 || cached <= h.cfg.Slots {
		return false
	}
	g.gone = cached
	return true
}

// wants returns the number of a grant's blocks in HBM if it has that many in all: its buffer, or
// all blocks that it computes. Cached blocks are in DRAM and are read through a buffer. With Keep
// they also enter HBM if there is room.
func (h *Hot) wants(g *Grant, all int64) int64 {
	cached := int64(g.Cached / h.blockTokens)
	switch {
	case g.settled && !g.kept:
		return min(all, h.cfg.Slots)
	case g.gone > 0:
		return all - g.gone + h.cfg.Slots
	case cached > 0 && !h.cfg.Keep:
		return min(all, max(0, all-cached)+h.cfg.Slots)
	}
	return all
}

// shrink frees the HBM blocks of a grant beyond wants.
func (h *Hot) shrink(g *Grant) {
	hot := min(g.hot, h.wants(g, g.all))
	h.used -= h.bytes(0, g.hot-hot)
	g.hot = hot
}

// Settle ends a grant's prefill.
func (h *Hot) Settle(g *Grant) {
	g.settled = true
	if h.cfg.Keep {
		g.kept = true
		h.kept = append(h.kept, g)
		return
	}
	h.shrink(g)
}

// Buffered reports whether a decoding grant looks its selection up in a buffer.
func (h *Hot) Buffered(g *Grant) bool { return !g.kept || g.gone > 0 }

// Eighths returns the share of a grant's context that its buffer serves, from the first block
// on, rounded up to eighths.
func (h *Hot) Eighths(g *Grant) int {
	if !g.kept {
		return 8
	}
	return int((8*g.gone + g.all - 1) / g.all)
}

// Whole reports whether all KV of a grant is in HBM.
func (h *Hot) Whole(g *Grant) bool { return g.hot == g.all }

// Release frees a grant in both tiers.
func (h *Hot) Release(g *Grant, ended bool) {
	if i := slices.Index(h.kept, g); i >= 0 {
		h.kept = slices.Delete(h.kept, i, i+1)
	}
	h.used -= h.bytes(g.all, g.hot)
	h.Pool.Release(g, ended)
	g.buffer = buffer{}
}

// Check verifies that the used bytes of HBM equal the sum over grants, and verifies DRAM.
func (h *Hot) Check(grants iter.Seq[*Grant]) error {
	var bytes int64
	for g := range grants {
		bytes += h.bytes(g.all, g.hot)
		if want := h.wants(g, g.all); g.hot != want {
			return fmt.Errorf("a request of %d blocks has %d in HBM, not %d", g.all, g.hot, want)
		}
	}
	if bytes != h.used || h.used > h.cfg.HBM {
		return fmt.Errorf("%d bytes of HBM used of %d, requests hold %d", h.used, h.cfg.HBM, bytes)
	}
	return h.Pool.Check(grants)
}
