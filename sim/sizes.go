package sim

import (
	"math"

	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/sched"
)

// sizes computes the HBM that requests of a tiered memory need.
type sizes struct {
	resident
	cache   *kv.Cache
	byChunk bool // the scheduler allocates the blocks of a prefill chunk by chunk
}

// allBlocks returns the HBM in bytes for n blocks of every group.
func (z *sizes) allBlocks(n int) int64 {
	return int64(math.Ceil(float64(n*z.Geometry.Groups())*z.cache.Skew())) * z.Geometry.BlockBytes
}

// selectedAtOnce returns the bytes of a decode's selection that must be in HBM at once: one layer,
// or every layer if each has its own pool.
func (z *sizes) selectedAtOnce(context int) int64 {
	return z.atOnce(z.Geometry.Blocks(context), z.sel.kept())
}

// atOnce returns the bytes of a selection among the given blocks that must be in HBM at once. The
// first kept blocks are always selected.
func (z *sizes) atOnce(blocks, kept int) int64 {
	if z.Spec.Sparse() && z.Spec.Selection.DenseLayers == 0 {
		kept = min(blocks, kept)
		blocks = kept + z.sel.policy.AtOnce(blocks-kept)
	}
	return int64(math.Ceil(float64(blocks)*z.cache.AtOnce())) * z.Geometry.BlockBytes
}

// opens returns the bytes that a decode step adds: a new open block in every group, or the metadata
// of the block that it fills.
func (z *sizes) opens(context int) int64 {
	added := z.metaBytes(context) - z.metaBytes(context-1)
	if (context-1)%z.Geometry.BlockTokens == 0 {
		added += z.allBlocks(1)
	}
	return added
}

// promptRest returns the HBM granted to a chunked prefill beyond its first tokens. vLLM 0.5 to 0.6,
// and Sarathi based on it, allocate the whole prompt at admission; V1 allocates per chunk. With
// batch control a chunked prefill holds only its previous chunks (SparseServe §3.3).
func (z *sizes) promptRest(target, tokens int) int64 {
	if z.byChunk || z.Spec.Offload.BatchControl {
		return 0
	}
	return z.allBlocks(z.Geometry.Blocks(target) - z.Geometry.Blocks(tokens))
}

// metaBytes returns the size of the selection metadata of a context's full blocks.
func (z *sizes) metaBytes(tokens int) int64 {
	if !z.Spec.Sparse() {
		return 0
	}
	return int64(tokens/z.Geometry.BlockTokens) * int64(z.Geometry.Groups()) * z.Geometry.MetaBytes
}

// segmentBuffers returns the HBM of a layer-segmented prefill: the KV of the current layer, the KV
// of earlier layers that are still being saved (at most the save buffer), the open block of every
// layer, and fp16 activations of all tokens (hidden state and one layer's queries, which attention
// overwrites). Linears run in slices of max_tokens whose activations are outside the cache. With a
// prefix hit it includes the prefix KV of the current and the next layer, unless the prefix is
// selected from in the cache.
func (z *sizes) segmentBuffers(tokens, hit int) int64 {
	prefix := int64(hit/z.Geometry.BlockTokens) * z.layerOfBlocks()
	layer := int64(z.Geometry.Blocks(tokens))*z.layerOfBlocks() - prefix
	queued := min(int64(z.Spec.Offload.SaveBufferMiB*(1<<20)), layer*int64(z.Model.Layers))
	if z.Spec.PrefixCache.Attend == PrefixSelected {
		prefix = 0
	}
	return layer + max(queued, layer) + 2*prefix + z.allBlocks(1) +
		int64(tokens-hit)*int64(z.Model.TokenValues)*2
}

// peakNeed returns the peak HBM of a request that runs alone: its prefill, possibly a second one
// after a late preemption, or its last decode step.
func (z *sizes) peakNeed(prompt, output, hit int) int64 {
	tokens := prompt + output
	prefill := z.allBlocks(z.Geometry.Blocks(tokens))
	if z.Spec.Segmented() {
		prefill = max(z.segmentBuffers(tokens, 0), z.segmentBuffers(tokens, hit))
	}
	// A filled block stays until it is saved, while a new one opens.
	decode := z.selectedAtOnce(tokens) + z.allBlocks(2)
	return z.metaBytes(tokens) + max(prefill, decode) + z.cache.Rounding()
}

// prefixSet returns the HBM in bytes for the prefix blocks that a prefill selects: over all layers,
// or only what must be resident at once.
func (z *sizes) prefixSet(r *sched.Request, all bool) int64 {
	if !z.selectsPrefix(r) {
		return 0
	}
	need := z.atOnce(z.hitBlocks(r), z.Spec.Selection.SinkBlocks)
	if all {
		need = max(need, z.sel.bytes(r.Hit))
	}
	return need
}

// looseBlocks returns the number of leading blocks that a chunked prefill need not keep in HBM.
func (z *sizes) looseBlocks(r *sched.Request) int {
	if z.selectsPrefix(r) {
		return z.hitBlocks(r)
	}
	return 0
}

// sampleSlack returns the bytes that rounding a sample to whole blocks may add, scaled to the
// model.
func (z *sizes) sampleSlack() int64 {
	if z.cache.Sample.Rate == 1 {
		return 0
	}
	return int64(float64(z.Geometry.BlockBytes) / z.cache.Sample.Rate)
}
