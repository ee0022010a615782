package sim_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/prefix"
)

// Law 2: blocks, metadata and prefill buffers fit what the card leaves for KV, by the server's
// account, which has no less than a recount. That weights and activations fit the rest is tested in
// hw.
func TestLaw2HBMHoldsEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawAny(t)
		c.drive(t, func(o *outcome) error { return c.checkHBM(o) })
	})
}

func (c *scenario) checkHBM(o *outcome) error {
	rounding := int64(0)
	if c.spec.Simulation.Heads == "sampled" {
		rounding = o.server.Rounding()
	}
	used := o.server.HBMUsed()
	if used > c.hbm+rounding {
		return fmt.Errorf("law 2: %d bytes of HBM used, there are %d", used, c.hbm)
	}
	if least := c.inHBM(o.server); least > used+rounding {
		return fmt.Errorf("law 2: requests have %d bytes in HBM, the server counts %d", least, used)
	}
	return o.server.Check()
}

// inHBM counts the bytes that requests have in HBM at the least: from how far each has come, the
// blocks of the cache, and the shapes of the model.
func (c *scenario) inHBM(server *sim.Server) (bytes int64) {
	b := sizesOf(c)
	seen := map[blockKey]bool{} // that requests may share
	for _, h := range server.Holders() {
		bytes += b.prompt(&h)
		keys := c.keys(&h)
		for layer := range c.model.Layers {
			tokens := b.tokens(&h, layer)
			blocks, full := b.blocks(tokens), tokens/b.size
			if c.spec.Sparse() && c.spec.Offload.On {
				bytes += int64(full) * b.meta
			}
			switch {
			case c.spec.Hot() && h.Decoding():
				bytes += int64(min(blocks, c.spec.Offload.HotBuffer/b.size)) * b.block
			case c.spec.Hot(): // its other blocks are in DRAM
				bytes += int64(max(0, blocks-h.Hit/b.size)) * b.block
			case !c.spec.Offload.On:
				for i := b.kept(tokens, layer); i < blocks; i++ {
					if i < min(full, len(keys)) {
						key := blockKey{layer, keys[i]}
						if seen[key] {
							continue
						}
						seen[key] = true
					}
					bytes += b.block
					if c.spec.Sparse() && i < full {
						bytes += b.meta
					}
				}
			}
		}
	}
	return bytes + server.Resident()*b.block/int64(c.model.KVHeads)
}

type blockKey struct {
	layer int
	key   uint64
}

// keys names the content of a request's first blocks that others may have too.
func (c *scenario) keys(h *sim.Holder) (keys []uint64) {
	if !c.spec.CachesPrefixes() {
		return nil
	}
	chain := prefix.NewChain(h.Text)
	for {
		key, ok := chain.Key((len(keys) + 1) * c.spec.BlockTokens)
		if !ok {
			return keys
		}
		keys = append(keys, key)
	}
}

// sizes are bytes in one layer, of all its KV heads.
type sizes struct {
	*scenario
	size  int   // tokens of a block
	block int64 // keys and values
	meta  int64 // two vectors a block
}

func sizesOf(c *scenario) sizes {
	m := &c.model
	vectors := int64(2 * m.KVHeads * m.HeadDim * m.KVBytesEach)
	if m.KVRank > 0 { // without the indexer's keys
		vectors = int64((m.KVRank + m.RopeDim) * m.KVBytesEach)
	}
	return sizes{c, c.spec.BlockTokens, vectors * int64(c.spec.BlockTokens), vectors}
}

// kept is the first block that a layer keeps for sure: with a window, all within it.
func (b *sizes) kept(tokens, layer int) int {
	if m := &b.model; m.WindowTokens > 0 && m.WindowPattern[layer%len(m.WindowPattern)] == 'w' {
		return b.blocks(max(0, tokens-m.WindowTokens))
	}
	return 0
}

func (b *sizes) blocks(tokens int) int { return (tokens + b.size - 1) / b.size }

// byLayers reports whether prompts are prefilled layer by layer.
func (b *sizes) byLayers() bool {
	return b.spec.Prefill.Split == "layer" || b.spec.Prefill.Split == "layer-chunked"
}

// tokens is the number of a request's tokens with KV in a layer, including the running step.
func (b *sizes) tokens(h *sim.Holder, layer int) int {
	switch seg := h.Segment; {
	case h.Decoding() && h.Decodes:
		return h.Context()
	case h.Decoding():
		return h.Context() - 1
	case seg == nil && !h.Started():
		return 0
	case b.byLayers() && layer < h.Layer:
		return h.Target
	case seg != nil && seg.In(layer):
		return seg.TokenTo
	case b.byLayers() && layer == h.Layer:
		return max(h.Hit, h.LayerTokens)
	}
	return h.Done // or hit, of layers to come
}

// prompt counts the memory that an offloading prompt holds outside the cache while it is prefilled
// layer by layer.
func (b *sizes) prompt(h *sim.Holder) (bytes int64) {
	m, seg := &b.model, h.Segment
	hit := h.Hit / b.size
	saved := int64(h.Target/b.size-hit) * b.block // of a layer, its full blocks
	open := b.block * int64(b.blocks(h.Target)-h.Target/b.size)
	switch {
	case !b.spec.Offload.On || !b.byLayers():
	case h.Decoding() && h.Saving:
		return saved // of the last layer
	case h.Decoding():
	case seg != nil && seg.Completes(m.Layers) && !h.Saving: // all has been saved
		return int64(m.Layers) * open
	case seg != nil:
		before := int64(seg.LayerTo - 1) // layers, whose open blocks stay
		bytes = int64(b.blocks(seg.TokenTo)-hit)*b.block + before*open
		bytes += min(before*saved, max(saved, int64(b.spec.Offload.SaveBufferMiB*(1<<20))))
		if b.spec.PrefixCache.Attend != sim.PrefixSelected {
			bytes += int64(hit*min(2, m.Layers)) * b.block // the next layer's is loading
		}
		bytes += int64(seg.Tokens()*m.QHeads*m.HeadDim) * 2
		return bytes + int64((h.Target-h.Hit)*m.Hidden)*2
	case h.Started():
		return int64(h.Layer)*open + int64((h.Target-h.Hit)*m.Hidden)*2
	}
	return 0
}
