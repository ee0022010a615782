package memory

// reclaim frees HBM for short bytes from one request's blocks. It returns false, and frees
// nothing, if all requests together cannot free enough. As in vLLM (v1/core/hisparse.py,
// reclaim_resident_blocks), the request with most blocks in HBM gives up its first ones. If it
// has a buffer, it gives up only the needed blocks; otherwise it also gives up the blocks that
// its new buffer takes. A request that would free nothing keeps its blocks. hold accounts for
// the blocks that the growing grant itself gives up.
func (h *Hot) reclaim(short int64, growing *Grant) bool {
	var most *Grant
	var all int64
	for _, g := range h.kept {
		all += max(0, h.gives(g)) * h.cfg.Block
		if h.gives(g) > 0 && (most == nil || g.all-g.gone > most.all-most.gone) {
			most = g
		}
	}
	if all < short {
		return false
	}
	blocks := (short + h.cfg.Block - 1) / h.cfg.Block
	if most.gone == 0 {
		most.gone = h.cfg.Slots // size of its buffer
	}
	most.gone = min(most.all, most.gone+blocks)
	if most != growing {
		h.shrink(most)
	}
	return true
}

// gives is the number of HBM blocks that a request could give up.
func (h *Hot) gives(g *Grant) int64 {
	if g.gone == 0 {
		return g.all - h.cfg.Slots
	}
	return g.all - g.gone
}
