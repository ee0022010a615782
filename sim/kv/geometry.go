package kv

// Geometry is the shape of one model's KV cache. A block holds the keys and values of
// BlockTokens consecutive tokens of one KV head of one layer, HND layout; a group is one
// (layer, KV head) pair.
type Geometry struct {
	Layers, KVHeads int
	BlockTokens     int
	BlockBytes      int64 // keys and values of one block
	MetaBytes       int64 // selection metadata of one full block
}

// Groups returns the number of (layer, KV head) pairs.
func (g Geometry) Groups() int { return g.Layers * g.KVHeads }

// Blocks returns the number of blocks that hold the given tokens, the open block included.
func (g Geometry) Blocks(tokens int) int {
	return (tokens + g.BlockTokens - 1) / g.BlockTokens
}

// TokenBytes returns the KV bytes of one token over all layers and heads.
func (g Geometry) TokenBytes() int64 {
	return g.BlockBytes / int64(g.BlockTokens) * int64(g.Groups())
}

// Moves is the traffic of one layer in one step. Counts are of the whole model also when heads
// are sampled.
type Moves struct {
	Layer      int
	Loads      int64 // blocks, DRAM -> HBM, before this layer's decode attention
	Saves      int64 // blocks, HBM -> DRAM, written by this layer
	BlockBytes int64
	// Prefix is further blocks, DRAM -> HBM, of the prefixes that prefills begin with: their part of
	// the layer, and digests. They are known before the step and can load while the layer before
	// computes.
	Prefix int64
	// Evictions is the blocks that lost their slots to this layer's: to loads, prefixes, and what
	// prefill writes.
	Evictions int64
	// Joined is the blocks that the layer's accesses miss and other requests have in HBM: they get
	// these slots and are not loaded. What chunks take up before is not among them.
	Joined int64
	// Longest is the blocks of Loads of the request that loads most; 0: not known. Of hot buffers.
	Longest int64
	// SavesInFlight says that saves of earlier steps of a request in the batch are not known to be
	// in DRAM: loads may be of them.
	SavesInFlight bool
	// InRounds says that progressive attention needs the loads round by round.
	InRounds bool
	// LoadRefs are the blocks to load in the order of their rounds, for devices that move real
	// bytes; nil for those that price.
	LoadRefs []BlockRef
	// For devices that look blocks up in tables of their own (Config.Tables): the same blocks
	// in the order of lists, and what else changed since the last Move. Evicted blocks lost
	// their slots, the first EvictedBefore of them before this layer's lists were looked up;
	// seated ones got slots for what the model writes.
	Missed, Seated, Evicted []BlockRef
	EvictedBefore           int
}

// BlockRef is one block and the HBM slot that it has.
type BlockRef struct {
	Seq   int32  // the cache's handle of the request
	Group int32  // layer*KVHeads + head
	Block int32  // index in the sequence
	Slot  uint32 // HBM slot
	Round int32  // of progressive attention, that needs it
}
