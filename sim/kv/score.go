package kv

import "github.com/sparseserve/sparseserve/sim/des"

// Score estimates how critical a block of a sampled group is, as of the request's newest
// selection from the group (Seq.Seen).
type Score func(s *Seq, group, block int) float32

// byScore evicts the idle block with the lowest score, as ArkVale does (Chen et al.,
// NeurIPS'24), which uses page scores for both recall and eviction. Ties go to the lower layer,
// request, group and block.
//
// Scores of a layer's blocks change when a step reaches the layer, and idle blocks change
// little more often. Each layer has a heap of its idle blocks. It is rebuilt if a victim is
// wanted and the layer has changed.
type byScore struct {
	pool   int
	score  Score
	layers []layerHeap
}

// layerHeap holds the idle blocks of one sampled layer, the next victim first.
type layerHeap struct {
	version uint32 // layer version of the heap
	blocks  des.Heap[scored]
}

type scored struct {
	score float32
	ref
}

func (x *byScore) entered(*Cache, ref) {}

func (x *byScore) tidy(*Cache, int) {}

func (x *byScore) victim(c *Cache, only *Layer) (ref, bool) {
	if c.pools[x.pool].idle == 0 {
		return ref{}, false
	}
	if x.layers == nil {
		x.layers = make([]layerHeap, len(c.layers))
	}
	var best *layerHeap
	for _, l := range c.layers {
		if l.pool != x.pool || only != nil && l != only {
			continue
		}
		h := &x.layers[l.index]
		x.renew(c, l, h)
		if h.settle(c) && (best == nil || h.blocks.Top().score < best.blocks.Top().score) {
			best = h
		}
	}
	if best == nil {
		return ref{}, false
	}
	r := best.blocks.Top().ref
	best.blocks.Remove(0)
	return r, true
}

// renew rebuilds a layer's heap if the layer has changed.
func (x *byScore) renew(c *Cache, l *Layer, h *layerHeap) {
	if h.version == l.version {
		return
	}
	h.version, h.blocks.Before = l.version, scored.before
	blocks := h.blocks.Items()[:0]
	for _, s := range c.seqs {
		if !s.live {
			continue
		}
		for g := l.From; g < l.To; g++ {
			for b, m := range s.row(g)[:s.blocks] {
				if m.idle() {
					blocks = append(blocks,
						scored{x.score(s, g, b), ref{s.id, m.when(), uint16(g), uint16(b)}})
				}
			}
		}
	}
	h.blocks.Fill(blocks)
}

// settle removes blocks that are no longer idle from the top and reports whether a block
// remains.
func (h *layerHeap) settle(c *Cache) bool {
	for h.blocks.Len() > 0 {
		r := h.blocks.Top().ref
		if m := c.at(r); m != nil && m.idle() && m.when() == r.stamp {
			return true
		}
		h.blocks.Remove(0)
	}
	return false
}

// before orders the blocks of a layer.
func (a scored) before(b scored) bool {
	switch {
	case a.score != b.score:
		return a.score < b.score
	case a.seq != b.seq:
		return a.seq < b.seq
	case a.group != b.group:
		return a.group < b.group
	}
	return a.block < b.block
}
