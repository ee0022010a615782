package kv

import "github.com/sparseserve/sparseserve/sim/prefix"

// reclaim has blocks of one request leave HBM for so many bytes, and says whether all requests
// together could give as many; else none leaves. As vLLM does it (v1/core/hisparse.py,
// reclaim_resident_blocks), the request with most blocks in HBM gives up its first ones: no more
// than are needed where it has a buffer, else those for the buffer that it then needs as well. One
// that would not gain by it stays whole. What the growing grant gives up itself, hold counts.
func (h *Hot) reclaim(short int64, growing *prefix.Grant) bool {
	var most *prefix.Grant
	var all int64
	for _, g := range h.kept {
		all += max(0, h.gives(g)) * h.cfg.Block
		if h.gives(g) > 0 && (most == nil || g.Blocks-g.Gone > most.Blocks-most.Gone) {
			most = g
		}
	}
	if all < short {
		return false
	}
	blocks := (short + h.cfg.Block - 1) / h.cfg.Block
	if most.Gone == 0 {
		most.Gone = h.cfg.Slots // what its buffer takes
	}
	most.Gone = min(most.Blocks, most.Gone+blocks)
	if most != growing {
		h.shrink(most)
	}
	return true
}

// gives is how many blocks of HBM a request could give up.
func (h *Hot) gives(g *prefix.Grant) int64 {
	if g.Gone == 0 {
		return g.Blocks - h.cfg.Slots
	}
	return g.Blocks - g.Gone
}
