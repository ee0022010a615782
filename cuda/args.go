package cuda

// The argument structs of sparseserve.h, field by field; shapes, units and equations are documented
// there. Every Ptr is the address of device memory or of pinned memory, as the header documents
// for the field.

// MemcpyArgs copies Bytes in any direction.
type MemcpyArgs struct {
	Dst, Src Ptr
	Bytes    int64
}

// MemsetArgs sets each byte to Value.
type MemsetArgs struct {
	Dst   Ptr
	Bytes int64
	Value int32
}

// FillArgs fills fp16 values uniform in (-Scale, Scale).
type FillArgs struct {
	Dst   Ptr
	Count int64
	Seed  uint64
	Scale float32
}

// EmptyArgs is an empty kernel.
type EmptyArgs struct{}

// FlashH2DArgs gathers pinned host blocks with one kernel; Src and Dst are readable by the GPU.
type FlashH2DArgs BlocksArgs

// GPUScatterArgs writes pinned host blocks with one kernel.
type GPUScatterArgs BlocksArgs

// MemcpyBlocksArgs copies with one memcpy per block; Src and Dst are pinned arrays.
type MemcpyBlocksArgs BlocksArgs

// BlocksArgs copies Count blocks from the addresses at Src to the addresses at Dst. It is not an
// operation itself: the types above select the engine.
type BlocksArgs struct {
	Src, Dst    Ptr
	Count       int64
	BlockBytes  int64
	Owner, Skip Ptr
	CTAs        int32
	Counted     Ptr // kernel forms: int64, how many blocks there are
}

// LookupArgs looks up the slots of a layer's listed blocks and assigns slots to blocks that are not
// in HBM.
type LookupArgs struct {
	Table, Cap, Page, List, Named, First, Slot, FreeSlot, Evicted Ptr
	Src, Dst, Before, Loads, Misses, State, Pool                  Ptr
	BlockBytes                                                    int64
	Batch, Heads, Stride, PageStride                              int32
	Group                                                         int32
	Frees, Evictions, Rounds, Micro                               int32
}

// TableArgs changes entries of tables: it first removes slots, then assigns slots.
type TableArgs struct {
	Evicted, Entry, Slot Ptr
	Evictions, Entries   int32
}

// SwapInArgs assigns the selected tokens of one layer slots in their requests' hot buffers.
type SwapInArgs struct {
	List, Count, Context, Page, Buffer, State, Fresh, Slot, Misses Ptr
	Offset                                                         int64
	Batch, Stride, Slots, RowBytes, PageStride, PageTokens         int32
}

// SlotsMax is the maximum number of slots of a hot buffer.
const SlotsMax = 16384

// SaveArgs saves a contiguous device tensor to host blocks through a Saver (FlashD2H).
type SaveArgs struct {
	Saver      Saver
	Src        Ptr
	Dst        Ptr // pinned array of addresses
	Count      int64
	BlockBytes int64
	After      Event
}

// DecodeArgs is paged decode attention, dense (List 0) or block-sparse.
type DecodeArgs struct {
	Q, Pool, Table, Context, List, Count, Out, LSE, Workspace Ptr
	Batch, HeadsQ, HeadsKV, HeadDim, BlockTokens              int32
	TableStride, ListStride                                   int32
	MaxBlocks                                                 int32
	Splits                                                    int32
	Scale                                                     float32
	Pages                                                     int32
	Slot                                                      Ptr
}

// PSAArgs is progressive sparse attention, microbatches First to First + Steps.
type PSAArgs struct {
	Q, Pool, Table, Context, Order, Count, Out, Used, Done, State, Flag Ptr
	Batch, HeadsQ, HeadsKV, HeadDim, BlockTokens                        int32
	TableStride, OrderStride                                            int32
	Micro                                                               int32
	First, Steps                                                        int32
	Scale, Epsilon                                                      float32
	Slot                                                                Ptr
}

// PrefillArgs is causal attention of one request's Prefix + QTokens tokens, for the last QTokens
// tokens. With Table, keys and values are in KV blocks of Pool, and K and V are not read.
type PrefillArgs struct {
	Q, K, V, Out                              Ptr
	QTokenStride, QHeadStride                 int64
	KTokenStride, KHeadStride                 int64
	VTokenStride, VHeadStride                 int64
	OutTokenStride, OutHeadStride             int64
	QTokens, Prefix, HeadsQ, HeadsKV, HeadDim int32
	Scale                                     float32
	Pool, Table                               Ptr
	TableStride, BlockTokens                  int32
}

// MIAttendArgs is attention with Prefill's shape in which each query attends to some of the keys:
// with lists to a half tile's blocks and columns, otherwise to the first Sink and newest Window
// keys (Window 0: all).
type MIAttendArgs struct {
	Prefill                   PrefillArgs
	Sink, Window              int32
	BlockStride, ColumnStride int32
	Blocks, Columns, Counts   Ptr
}

// MIPoolArgs averages each 64 tokens of a head.
type MIPoolArgs struct {
	X, Out                  Ptr
	TokenStride, HeadStride int64
	Tokens, Heads           int32
}

// MIBlocksArgs selects the Top blocks of each 64 queries by pooled queries and keys.
type MIBlocksArgs struct {
	Q, K, Blocks, Counts             Ptr
	Scores                           Ptr
	ScoreCount                       int64
	QTokens, Prefix, HeadsQ, HeadsKV int32
	BlockStride                      int32
	Top                              int32
}

// MIEstimateArgs sums the last queries' weights by key and by distance.
type MIEstimateArgs struct {
	Prefill                    PrefillArgs
	Vertical, Slash, Workspace Ptr
	Stride                     int64
}

// MITopKArgs selects the K largest of N scores of each row, up to millions, in the order of their
// indices; the First lowest indices are always selected.
type MITopKArgs struct {
	Scores, List, Workspace Ptr
	ScoreStride, ListStride int64
	Rows, N, K, First       int32
}

// MIGatherArgs copies the keys and values of a request's KV blocks to tensors.
type MIGatherArgs struct {
	Pool, Table, K, V                       Ptr
	HeadStride                              int64
	TableStride, Tokens, Heads, BlockTokens int32
}

// MILinesArgs makes lists for MIAttendArgs of vertical and slash lines.
type MILinesArgs struct {
	Vertical, Slash, Blocks, Columns, Counts Ptr
	VerticalStride, SlashStride              int64
	VerticalCount, SlashCount                int32
	HeadsQ, QTokens, Prefix                  int32
	BlockStride, ColumnStride                int32
}

// DigestArgs digests full blocks.
type DigestArgs struct {
	Pool, Slot, Dst, Meta Ptr
	Count                 int64
	HeadDim, BlockTokens  int32
}

// ScoresArgs scores blocks by their digests.
type ScoresArgs struct {
	Q, Meta, First, Count, Scores   Ptr
	Batch, HeadsQ, HeadsKV, HeadDim int32
	ScoreStride                     int32
	MaxBlocks                       int32
}

// TopKArgs selects each unit's K most critical blocks. K is at most TopKMax.
type TopKArgs struct {
	Scores, Blocks, List, Count    Ptr
	Units, ScoreStride, ListStride int32
	K                              int32
	Sink, Window                   int32
}

// TopKMax is the largest K of TopKArgs.
const TopKMax = 4096

// SelectArgs is ScoresArgs and TopKArgs in one kernel.
type SelectArgs struct {
	Scores  ScoresArgs
	TopK    TopKArgs
	Arrived Ptr
}

// LinearArgs is y = x w^T.
type LinearArgs struct {
	X, W, Y         Ptr
	Tokens, In, Out int32
}

// EmbedArgs gathers the rows of an embedding table.
type EmbedArgs struct {
	Table, Token, Out Ptr
	Tokens, Hidden    int32
}

// RMSNormArgs normalises rows of X, or of Residual after X has been added to it (Residual 0: none).
// Row chooses rows of X (0: all in order).
type RMSNormArgs struct {
	X, Residual, Weight, Out, Row Ptr
	Rows, Hidden                  int32
	Eps                           float32
}

// RopeArgs rotates q and k in place, packs q into QOut (0: not) and stores k and v into KV blocks
// of Pool (0: not).
type RopeArgs struct {
	QKV, Position, InvFreq, QOut, Pool, Table, Row, First Ptr
	RowStride, HeadStride                                 int64
	Tokens, HeadsQ, HeadsKV, HeadDim, BlockTokens         int32
	Pages                                                 int32
}

// KVWriteArgs is the part of RopeArgs that stores to KV blocks.
type KVWriteArgs RopeArgs

// SiluMulArgs is silu(gate) * up.
type SiluMulArgs struct {
	X, Out      Ptr
	Tokens, FFN int32
}

// ArgmaxArgs finds each row's greedy token.
type ArgmaxArgs struct {
	Logits, Out         Ptr
	Rows, Vocab, Stride int32
}
