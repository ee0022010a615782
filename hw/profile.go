package hw

import (
	"bytes"
	"fmt"

	"github.com/BurntSushi/toml"
)

// Profile is a machine as the cost models see it: a card, the kernels that an
// engine runs on it, and the engine's own time on the host (machine.go puts it
// together). Every number is a Figure or a row that embeds one; the dim tag names
// the figure's dimension. Coordinates of rows have their unit in the name.
type Profile struct {
	Name       string     `toml:"name"`  // the card's
	Title      string     `toml:"title"` // the card's
	Provenance Provenance `toml:"provenance"`
	GPU        GPU        `toml:"gpu"`
	Link       Link       `toml:"link"`
	CPU        CPU        `toml:"cpu"`

	KernelCosts
	EngineCosts
}

// KernelCosts are the measured costs of a library's kernels on one card.
type KernelCosts struct {
	Shapes  []Shape    `toml:"shapes"`  // model shapes that rows were measured on
	Linears []TokenRow `toml:"linears"` // the four linears of one layer
	// LinearLaunch is what of a row takes no bytes and no FLOPs: launches, first waves and
	// tails of a layer's matrices, which are alike on every card of an architecture.
	LinearLaunch Figure `toml:"linear_launch,omitempty" dim:"time,optional"`
	// LinearGrid is what numbers of tokens above it are rounded up to a multiple of
	// before they go through linears or the LM head, as a server does that has
	// chosen their kernels ahead.
	LinearGrid Figure       `toml:"linear_grid,omitempty" dim:"tokens,optional"`
	Pointwise  []TokenRow   `toml:"pointwise"`      // norms, rope, activation and residuals of one layer
	Head       []TokenRow   `toml:"head,omitempty"` // LM head and the choice of a token, by rows that emit one
	Prefill    []PrefillRow `toml:"prefill_attention"`
	Paged      PagedPrefill `toml:"paged_prefill,omitempty"`

	Sampling     Sampling  `toml:"sampling,omitempty"`
	Embedding    Embedding `toml:"embedding,omitempty"`
	DenseDecode  Stream    `toml:"dense_decode"`
	SparseDecode Stream    `toml:"sparse_decode"`
	PSADecode    PSADecode `toml:"psa_decode,omitempty"`
	Scoring      Stream    `toml:"scoring"`
	Digest       Digest    `toml:"digest,omitempty"`
	Clock        Clock     `toml:"clock,omitempty"`
	Load         Loading   `toml:"load"`
	Save         Saving    `toml:"save"`

	Fits []Fit `toml:"fits,omitempty"`
}

// Provenance says how and where the profile's own measurements were made.
type Provenance struct {
	Date   string   `toml:"date,omitempty"`
	Device string   `toml:"device,omitempty"`
	Host   string   `toml:"host,omitempty"`
	Driver string   `toml:"driver,omitempty"`
	CUDA   string   `toml:"cuda,omitempty"`
	Notes  []string `toml:"notes,omitempty"`
}

// Fit is the quality of one fitted cost model. Errors are relative, on points
// that the fit has not seen. R2 is of log seconds over all points: those held
// out may be few and alike.
type Fit struct {
	Model       string   `toml:"model"`              // table that it fills, such as load.flash
	Samples     int      `toml:"samples"`            // points measured
	HeldOut     int      `toml:"held_out,omitempty"` // points kept from the fit
	R2          float64  `toml:"r2"`
	MedianError float64  `toml:"median_error,omitempty"`
	MaxError    float64  `toml:"max_error"`
	Flags       []string `toml:"flags,omitempty"`
}

// Shape is the part of a model's shape that one layer's cost depends on.
type Shape struct {
	Name    string `toml:"name"`
	Hidden  int    `toml:"hidden"`
	QHeads  int    `toml:"q_heads"`
	KVHeads int    `toml:"kv_heads"`
	HeadDim int    `toml:"head_dim"`
	FFN     int    `toml:"ffn"`
	Vocab   int    `toml:"vocab,omitempty"` // of the shape's head rows
}

// TokenRow is the time of one layer's part at a number of tokens in the batch.
type TokenRow struct {
	Shape  string `toml:"shape"`
	Tokens int    `toml:"tokens"`
	Figure `dim:"time"`
}

// GainRow is how much less time a layer's linears of some tokens take at the card's
// full clock than without pause, as a share.
type GainRow struct {
	Shape  string `toml:"shape"`
	Tokens int    `toml:"tokens"`
	Figure `dim:"share"`
}

// PrefillRow is prefill attention for chunks of Query tokens: t = launch +
// FLOPs/rate.
type PrefillRow struct {
	Query  int    `toml:"query_tokens"`
	Launch Figure `toml:"launch" dim:"time"`
	Rate   Figure `toml:"rate" dim:"compute" by:"peak"`
}

// PagedPrefill is the kernel for chunks that attend to earlier ones through block
// tables: a CTA for every so many query tokens of a query head, none of which splits
// the KV. It may be another than the rows', or the same, whose rows are too far apart
// to show its waves.
type PagedPrefill struct {
	Rows Figure `toml:"rows,omitempty" dim:"tokens,optional"`
	CTAs Figure `toml:"ctas,omitempty" dim:"count,optional"` // that run at full speed at once
}

// Sampling is drawing a token by top-p from the logits of each row, which sorts them:
//
//	t = launch + vocab row + rows vocab 4 B / rate
type Sampling struct {
	Launch Figure `toml:"launch,omitempty" dim:"time,optional"`
	Row    Figure `toml:"row,omitempty" dim:"time,optional"`           // for each entry of the vocabulary, however many rows there are
	Rate   Figure `toml:"rate,omitempty" dim:"rate,optional" by:"hbm"` // of fp32 logits
}

// Embedding is the gather of token rows: t = launch + bytes/rate.
type Embedding struct {
	Launch Figure `toml:"launch,omitempty" dim:"time,optional"`
	Rate   Figure `toml:"rate,omitempty" dim:"rate,optional" by:"hbm"` // bytes read and written
}

// Digest is the selection metadata of blocks that become full, a kernel for each
// request that fills any: t = launch + bytes/rate, the bytes of their K.
type Digest struct {
	Launch Figure `toml:"launch,omitempty" dim:"time,optional"`
	Rate   Figure `toml:"rate,omitempty" dim:"rate,optional" by:"hbm"`
}

// Clock is what the card's clock does under the power of prefill's linears, and to
// decodes behind them (clock.go).
type Clock struct {
	Gain  []GainRow `toml:"gain,omitempty"`
	Alone Figure    `toml:"alone,omitempty" dim:"share,optional"` // of the full clock, which linears without pause leave

	Meter Figure `toml:"meter,omitempty" dim:"time,optional"` // time constant of measured power
	Pace  Figure `toml:"pace,omitempty" dim:"time,optional"`  // in which power that is off by the limit would take or give the whole clock

	// What draws so much of the limit at the full clock; what is not set is as copies. All
	// but attention is below it, or the clock would never be back.
	Attention Figure `toml:"attention,omitempty" dim:"power,optional"` // of prefill; not set: the limit
	Copies    Figure `toml:"copies,omitempty" dim:"share,optional"`    // within HBM, and all that is not named here
	Idle      Figure `toml:"idle,omitempty" dim:"share,optional"`      // nothing
	Dense     Figure `toml:"dense,omitempty" dim:"share,optional"`     // attention of decodes
	Linears   Figure `toml:"linears,omitempty" dim:"share,optional"`   // of decodes

	Decode Figure `toml:"decode,omitempty" dim:"share,optional"` // of a layer of decodes' time at the full clock, which goes with the clock
}

// Stream is a kernel that lives on bytes: t = launch + bytes/rate and what the
// optional figures add (attention.go). A list is what one KV head of one
// request reads.
type Stream struct {
	Launch Figure `toml:"launch" dim:"time"`
	Floor  Figure `toml:"floor,omitempty" dim:"time,optional"`
	Rate   Figure `toml:"rate" dim:"rate" by:"hbm"`

	// Of decode.
	Merge Figure `toml:"merge,omitempty" dim:"time,optional"` // for each split of a list and query head of it
	CTAs  Figure `toml:"ctas,omitempty" dim:"count,optional"` // splits of all lists that run at once
	// Of decode of selected blocks, whose CTAs come in waves (waves.go).
	Cut  Figure `toml:"cut,omitempty" dim:"time,optional"`   // where lists are cut
	Join Figure `toml:"join,omitempty" dim:"time,optional"`  // the same, where their CTAs also come in more waves than one
	Wave Figure `toml:"wave,omitempty" dim:"time,optional"`  // for each wave but the first
	Full Figure `toml:"full,omitempty" dim:"count,optional"` // CTAs that the last of some waves must have to be as fast as the others
	// Of dense decode of a batch whose contexts are known.
	Tail  Figure `toml:"tail,omitempty" dim:"time,optional"`  // for each block that the warp with most of them has more than the mean of all
	Piece Figure `toml:"piece,omitempty" dim:"time,optional"` // where a CTA has the end of one list and the beginning of another
	Pages Figure `toml:"pages,omitempty" dim:"time,optional"` // where the KV's pages lie anywhere in a large pool

	// Of scoring.
	AtOnce   Figure `toml:"at_once,omitempty" dim:"count,optional"`  // blocks of a list that one CTA scores at once
	Long     Figure `toml:"long,omitempty" dim:"time,optional"`      // where lists are longer
	Room     Figure `toml:"room,omitempty" dim:"count,optional"`     // lists that have more than one CTA each
	Crowd    Figure `toml:"crowd,omitempty" dim:"time,optional"`     // where there are more lists
	PerQuery Figure `toml:"per_query,omitempty" dim:"time,optional"` // there, for each query head of a KV head but the first
	PerHead  Figure `toml:"per_head,omitempty" dim:"time,optional"`  // for each list beyond room
	PerLong  Figure `toml:"per_long,omitempty" dim:"time,optional"`  // the same, where lists are longer than at_once

	Largest Figure `toml:"largest,omitempty" dim:"size,optional"` // most bytes that were measured
}

// PSADecode is progressive sparse attention, which takes lists in rounds of a
// microbatch of blocks.
type PSADecode struct {
	Launch   Figure `toml:"launch,omitempty" dim:"time,optional"`
	PerHead  Figure `toml:"per_head,omitempty" dim:"time,optional"`  // for each list
	Round    Figure `toml:"round,omitempty" dim:"time,optional"`     // for each microbatch of one list
	PerBlock Figure `toml:"per_block,omitempty" dim:"time,optional"` // for each block of one list
	Relaunch Figure `toml:"relaunch,omitempty" dim:"time,optional"`  // for each launch but the first
	Rate     Figure `toml:"rate,omitempty" dim:"rate,optional" by:"hbm"`
	Largest  Figure `toml:"largest,omitempty" dim:"size,optional"` // most bytes that were measured
	// A block of one list whose CTA shares the card with few others, as where most
	// lists have ended in earlier rounds.
	Alone Figure `toml:"alone,omitempty" dim:"time,optional"`
	// A kernel whose clusters of CTAs share a list, where there are room for as many.
	Few PSAFew `toml:"few,omitempty"`
}

// PSAFew is progressive sparse attention of few lists, each shared by a cluster
// of CTAs that take a wave of blocks at a time.
type PSAFew struct {
	Room      Figure `toml:"room,omitempty" dim:"count,optional"` // most lists
	Wave      Figure `toml:"wave,omitempty" dim:"count,optional"` // blocks; half as many of more than `full` lists
	Launch    Figure `toml:"launch,omitempty" dim:"time,optional"`
	Query     Figure `toml:"query,omitempty" dim:"time,optional"` // for each query head of a KV head
	NextWave  Figure `toml:"next_wave,omitempty" dim:"time,optional"`
	WaveQuery Figure `toml:"wave_query,omitempty" dim:"time,optional"` // of a wave but the first, for each query head of a KV head
	Rate      Figure `toml:"rate,omitempty" dim:"rate,optional" by:"hbm"`
	Alone     Figure `toml:"alone,omitempty" dim:"time,optional"` // a block of one warp, where most lists have ended
	Full      Figure `toml:"full,omitempty" dim:"count,optional"` // lists up to which a wave is whole; half of room where it is not given
}

// Loading holds the DRAM->HBM engines.
type Loading struct {
	MemcpyCall   Figure     `toml:"memcpy_call" dim:"time"`                       // per block
	MemcpyBase   Figure     `toml:"memcpy_base,omitempty" dim:"time,optional"`    // per batch of blocks
	MemcpyEarly  Figure     `toml:"memcpy_early,omitempty" dim:"time,optional"`   // by which each of the first blocks costs more
	MemcpyFirst  Figure     `toml:"memcpy_first,omitempty" dim:"count,optional"`  // blocks of a batch that have cost half of what all first ones do more
	MemcpyStart  Figure     `toml:"memcpy_start,omitempty" dim:"time,optional"`   // per batch, where blocks are large
	MemcpyWhole  Figure     `toml:"memcpy_whole,omitempty" dim:"size,optional"`   // bytes of a block from which all of it is paid
	MemcpyPools  []PoolTime `toml:"memcpy_pools,omitempty"`                       // per block by the host pool; memcpy_call is not read then
	BatchedCall  Figure     `toml:"batched_call" dim:"time"`                      // per batch
	BatchedBlock Figure     `toml:"batched_block" dim:"time"`                     // per block
	BatchedEarly Figure     `toml:"batched_early,omitempty" dim:"share,optional"` // share by which each of the first blocks costs more
	BatchedFirst Figure     `toml:"batched_first,omitempty" dim:"count,optional"` // how many these are
	BatchedSizes []SizeRow  `toml:"batched_sizes,omitempty"`                      // per block by its size; batched_block is not read then
	FlashLaunch  Figure     `toml:"flash_launch" dim:"time"`
	FlashFloor   Figure     `toml:"flash_floor,omitempty" dim:"time,optional"`
	FlashBlock   Figure     `toml:"flash_block,omitempty" dim:"time,optional"`  // per block, seen where blocks are small
	FlashQueued  Figure     `toml:"flash_queued,omitempty" dim:"time,optional"` // the launch behind other kernels
	FlashIdle    Figure     `toml:"flash_idle,omitempty" dim:"time,optional"`   // a gather of nothing there
	// FlashBesidePSA is the share of its speed that a gather loses while progressive
	// attention of the round before runs beside it.
	FlashBesidePSA Figure    `toml:"flash_beside_psa,omitempty" dim:"share,optional"`
	Flash          []PoolRow `toml:"flash"`
}

// PoolRow is the rate of a kernel that reads a pinned host pool of some size.
type PoolRow struct {
	PoolGiB float64 `toml:"pool_gib"`
	Figure  `dim:"rate" by:"h2d"`
}

// PoolTime is the time of one copy to or from a pinned host pool of some size.
type PoolTime struct {
	PoolGiB float64 `toml:"pool_gib"`
	Figure  `dim:"time"`
}

// SizeRow is a time per block for blocks of some size.
type SizeRow struct {
	BlockBytes int `toml:"block_bytes"`
	Figure     `dim:"time"`
}

// Saving holds the HBM->DRAM engines.
type Saving struct {
	MemcpyCall  Figure     `toml:"memcpy_call" dim:"time"`                     // per block
	MemcpyBase  Figure     `toml:"memcpy_base,omitempty" dim:"time,optional"`  // per batch of blocks
	MemcpyLong  Figure     `toml:"memcpy_long,omitempty" dim:"time,optional"`  // per block, where a batch is long
	MemcpyHalf  Figure     `toml:"memcpy_half,omitempty" dim:"count,optional"` // blocks of a batch at which half of it is paid
	MemcpyStart Figure     `toml:"memcpy_start,omitempty" dim:"time,optional"` // per batch, where blocks are large
	MemcpyWhole Figure     `toml:"memcpy_whole,omitempty" dim:"size,optional"` // bytes of a block from which all of it is paid
	MemcpyPools []PoolTime `toml:"memcpy_pools,omitempty"`                     // per block by the host pool; memcpy_call is not read then
	// MemcpyBesidePools is what memcpy_pools is, while prefill is computed beside
	// the saves. Absent: what they take alone.
	MemcpyBesidePools []PoolTime `toml:"memcpy_beside_pools,omitempty"`
	GPULaunch         Figure     `toml:"gpu_launch" dim:"time"`
	GPUFloor          Figure     `toml:"gpu_floor,omitempty" dim:"time,optional"`
	GPUBlock          Figure     `toml:"gpu_block,omitempty" dim:"time,optional"` // per block, seen where blocks are small
	GPURate           Figure     `toml:"gpu_rate" dim:"rate" by:"d2h"`
	// Contention is the share of compute lost while the GPU scatter kernel runs.
	Contention Figure `toml:"contention" dim:"share"`
	FlashCall  Figure `toml:"flash_call" dim:"time"`                     // the one memcpy into staging
	FlashWake  Figure `toml:"flash_wake,omitempty" dim:"time,optional"`  // per scatter thread
	FlashJoin  Figure `toml:"flash_join,omitempty" dim:"time,optional"`  // for more threads than one
	FlashBlock Figure `toml:"flash_block,omitempty" dim:"time,optional"` // CPU time per block, which small blocks show
	FlashChunk Figure `toml:"flash_chunk,omitempty" dim:"size,optional"` // a staging buffer: its copy and scatter do not overlap
	FlashNear  Figure `toml:"flash_near,omitempty" dim:"size,optional"`  // bytes after which a save runs at the rows' long rate
	// RingLaunch and RingRate are what the GPU takes to copy a request's full
	// blocks of a layer to the save buffer, from where any engine saves them. Absent:
	// blocks are saved from where they lie.
	RingLaunch Figure       `toml:"ring_launch,omitempty" dim:"time,optional"`
	RingRate   Figure       `toml:"ring_rate,omitempty" dim:"rate,optional" by:"hbm"`
	Threads    Figure       `toml:"threads" dim:"threads"` // scatter threads unless asked otherwise
	Scatter    []ScatterRow `toml:"scatter"`
}

// ScatterRow is the CPU scatter's rate with some threads.
type ScatterRow struct {
	Threads int `toml:"threads"`
	Figure  `dim:"rate" by:"cpu"`
	Long    Figure `toml:"long,omitempty" dim:"rate,optional" by:"cpu"` // of a long save; the rate itself where absent
}

// Encode returns the machine as one TOML text that ParseProfile reads back.
func (p *Profile) Encode() ([]byte, error) {
	var buf bytes.Buffer
	if err := toml.NewEncoder(&buf).Encode(p); err != nil {
		return nil, fmt.Errorf("profile %s: %w", p.Name, err)
	}
	return buf.Bytes(), nil
}
