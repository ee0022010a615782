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

// Blocks returns the number of blocks that hold the given tokens, including the open block.
func (g Geometry) Blocks(tokens int) int {
	return (tokens + g.BlockTokens - 1) / g.BlockTokens
}

// TokenBytes returns the KV bytes of one token over all layers and heads.
func (g Geometry) TokenBytes() int64 {
	return g.BlockBytes / int64(g.BlockTokens) * int64(g.Groups())
}

// Moves is the traffic of one layer in one step. Counts are scaled to the whole model if heads are
// sampled.
type Moves struct {
	Layer      int
	Loads      int64 // blocks, DRAM -> HBM, before this layer's decode attention
	Saves      int64 // blocks, HBM -> DRAM, written by this layer
	BlockBytes int64
	// Prefix is additional blocks, DRAM -> HBM, of cached prefixes of prefills: their blocks in this
	// layer, and digests. They are known before the step, so they can be loaded while the previous
	// layer computes.
	Prefix int64
	// Joined is the missed blocks that other requests have in HBM. They use these slots without a
	// load. Blocks that prefill chunks joined before (Write) are not counted.
	Joined int64
	// Longest is the largest number of blocks in Loads of one request, for hot buffers; 0: unknown.
	Longest int64
	// SavesInFlight reports whether saves of earlier steps of a request in the batch may not have
	// reached DRAM yet. Loads may read their blocks.
	SavesInFlight bool
	// InRounds reports whether progressive attention needs the loads round by round.
	InRounds bool
	// LoadRefs are the blocks to load in the order of their rounds, for devices that move real
	// bytes; nil for devices that only compute costs.
	LoadRefs []BlockRef
	// For devices with their own block tables (Config.Tables): the changes since the last Move.
	// Missed are the blocks of LoadRefs in list order. Seated blocks got slots for writes of the
	// model. Evicted blocks lost their slots; the first EvictedBefore lost them before this layer's
	// lists were looked up.
	Missed, Seated, Evicted []BlockRef
	EvictedBefore           int
}

// BlockRef is one block and its HBM slot.
type BlockRef struct {
	Seq   int32  // the cache's handle of the request
	Group int32  // layer*KVHeads + head
	Block int32  // index in the sequence
	Slot  uint32 // HBM slot
	Round int32  // round of progressive attention that needs the block
}
