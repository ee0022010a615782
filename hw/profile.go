package hw

import "github.com/sparseserve/sparseserve/hw/llm"

// Profile is a machine as the cost models use it: a card, the kernels that an engine runs on it,
// and the engine's own host time (machine.go combines them). Every number is a Figure or a row that
// embeds one. The dim tag names the figure's dimension. Coordinates of rows have their unit in the
// name.
type Profile struct {
	Name       string     `toml:"name" want:"a name"` // the card's
	Title      string     `toml:"title"`              // the card's
	Provenance Provenance `toml:"provenance"`

	Chip
	KernelCosts
	EngineCosts
}

// KernelCosts are the measured costs of a library's kernels on one card.
type KernelCosts struct {
	Shapes []Shape `toml:"shapes"` // model shapes that rows were measured on
	// the four linears of one layer
	Linears []TokenRow `toml:"linears" rising:"tokens" each:"shape"`
	// LinearLaunch is the part of a row that is neither bytes nor FLOPs: launches, first waves and
	// tails of a layer's matrices. Cards of one architecture have the same.
	LinearLaunch Figure `toml:"linear_launch,omitempty" dim:"time,optional"`
	// norms, rope, activation and residuals of one layer
	Pointwise []TokenRow   `toml:"pointwise" rising:"tokens" each:"shape"`
	Prefill   []PrefillRow `toml:"prefill_attention" rising:"query_tokens"`
	Paged     PagedPrefill `toml:"paged_prefill,omitempty"`
	// SparsePrefill has a row for each sparse pattern, or none.
	SparsePrefill []SparseRow `toml:"sparse_prefill,omitempty" unique:"pattern"`

	Sampling     Sampling `toml:"sampling,omitempty"`
	DenseDecode  Stream   `toml:"dense_decode"`
	SparseDecode Stream   `toml:"sparse_decode"`
	Scoring      Stream   `toml:"scoring"`
	Selected     Selected `toml:"selected,omitempty"`
	Clock        Clock    `toml:"clock,omitempty"`
	Load         Loading  `toml:"load"`
	Save         Saving   `toml:"save"`

	// Experts has one row per type of expert weights that was measured.
	Experts []ExpertRow `toml:"experts,omitempty" unique:"weights"`
	// Grids are kernels with measured times over their sizes, in place of linears and dense_decode.
	Grids []Grid `toml:"grids,omitempty" unique:"kernel type program"`

	Fits []Fit `toml:"fits,omitempty"`
}

// Provenance records how and where the profile was measured.
type Provenance struct {
	Date   string   `toml:"date,omitempty"`
	Device string   `toml:"device,omitempty"`
	Host   string   `toml:"host,omitempty"`
	Driver string   `toml:"driver,omitempty"`
	CUDA   string   `toml:"cuda,omitempty"`
	Notes  []string `toml:"notes,omitempty"`
}

// Fit is the quality of one fitted cost model. Errors are relative, on held-out points. R2 uses log
// seconds of all points, because the held-out points may be few and similar.
type Fit struct {
	Model       string  `toml:"model"`              // table that it fills, such as load.flash
	Samples     int     `toml:"samples"`            // points measured
	HeldOut     int     `toml:"held_out,omitempty"` // points kept from the fit
	R2          float64 `toml:"r2,omitempty"`
	MedianError float64 `toml:"median_error,omitempty"`
	MaxError    float64 `toml:"max_error"`
	// Within5 and Within10 are the shares of held-out points of an import within 5 and 10 %.
	Within5  float64  `toml:"within_5,omitzero"`
	Within10 float64  `toml:"within_10,omitzero"`
	Flags    []string `toml:"flags,omitempty"`
}

// Shape is the part of a model's shape that one layer's cost depends on.
type Shape struct {
	Name    string `toml:"name"`
	Hidden  int    `toml:"hidden" range:">= 1, <= 4194304"`
	QHeads  int    `toml:"q_heads" range:">= 1, <= 4194304"`
	KVHeads int    `toml:"kv_heads" range:">= 1, <= 4194304"`
	HeadDim int    `toml:"head_dim" range:">= 1, <= 4194304"`
	FFN     int    `toml:"ffn" range:">= 1, <= 4194304"`
}

// TokenRow is the time of a part of one layer at a number of tokens in the batch.
type TokenRow struct {
	Shape  string `toml:"shape"`
	Tokens int    `toml:"tokens"`
	Figure `dim:"time"`
}

// GainRow is the share of time that a layer's linears save at the card's full clock, over linears
// without pause.
type GainRow struct {
	Shape  string `toml:"shape"`
	Tokens int    `toml:"tokens"`
	Figure `dim:"share"`
}

// PrefillRow is prefill attention for chunks of Query tokens: t = launch + FLOPs/rate.
type PrefillRow struct {
	Query  int    `toml:"query_tokens"`
	Launch Figure `toml:"launch" dim:"time"`
	Rate   Figure `toml:"rate" dim:"compute" by:"peak"`
}

// ExpertRow is the cost of a layer's routed experts besides their grid, for n tokens that each go
// to k experts:
//
//	t = launch + D expert(m, w) + 2 B n k hidden / move
//
// with D the number of experts that receive tokens, m their mean tokens, and w the weights of each.
type ExpertRow struct {
	Weights string `toml:"weights" values:"bf16 fp8 fp8_block nvfp4 mxfp4"`
	Launch  Figure `toml:"launch" dim:"time"`
	// rate of sending tokens to their experts and back
	Move Figure `toml:"move" dim:"rate" by:"hbm"`
}

// PagedPrefill is the kernel for chunks that attend to earlier chunks through block tables. A CTA
// serves Rows query tokens of a query head and does not split the KV. It may be another kernel than
// in the prefill rows, or the same one, whose rows are too far apart to show its waves.
type PagedPrefill struct {
	// query tokens per CTA
	Rows Figure `toml:"rows,omitempty" dim:"tokens,optional"`
	// Rate is the rate of all CTAs together; not set: the rate of the longest chunks.
	Rate Figure `toml:"rate,omitempty" dim:"compute,optional" by:"peak"`
	// Copy is the time to copy the K or V rows of one block, at most 64. A CTA copies blocks in
	// sequence.
	Copy Figure `toml:"copy,omitempty" dim:"time,optional"`
}

// Sampling is the cost of top-p sampling from the logits of each row, which sorts them:
//
//	t = launch + vocab row + rows vocab 4 B / rate
type Sampling struct {
	Launch Figure `toml:"launch,omitempty" dim:"time,optional"`
	// per entry of the vocabulary, independent of the number of rows
	Row  Figure `toml:"row,omitempty" dim:"time,optional"`
	Rate Figure `toml:"rate,omitempty" dim:"rate,optional" by:"hbm"` // of fp32 logits
}

// Clock describes the card's clock under the power of prefill's linears (clock.go).
type Clock struct {
	Gain []GainRow `toml:"gain,omitempty" rising:"tokens" each:"shape"`
	// share of the full clock at which linears without pause settle
	GEMMSteadyRatio Figure `toml:"gemm_steady_ratio,omitempty" dim:"share,optional"`
	// time constant with which the clock falls under a chunk and rises in everything else
	Settling Figure `toml:"settling,omitempty" dim:"time,optional"`
}

// Stream is a kernel bound by bytes: t = launch + bytes/rate and the terms of the optional figures
// (memory_bound.go). A list is the data that one KV head of one request reads.
type Stream struct {
	Launch Figure `toml:"launch" dim:"time"`
	Floor  Figure `toml:"floor,omitempty" dim:"time,optional"`
	Rate   Figure `toml:"rate" dim:"rate" by:"hbm"`
	// Dense decode: rate at which L2 serves all bytes, if some are read more than once. Not set:
	// repeated reads come from HBM.
	L2Rate Figure `toml:"l2_rate,omitempty" dim:"rate,optional" by:"peak"`

	// Decode: for each split of a list and each of its query heads.
	Merge Figure `toml:"merge,omitempty" dim:"time,optional"`
}

// Loading holds the DRAM->HBM engines.
type Loading struct {
	// per block
	MemcpyCall  Figure    `toml:"memcpy_call" dim:"time"`
	FlashLaunch Figure    `toml:"flash_launch" dim:"time"`
	FlashFloor  Figure    `toml:"flash_floor,omitempty" dim:"time,optional"`
	Flash       []PoolRow `toml:"flash" rising:"pool_gib"`
	Swap        SwapCost  `toml:"swap,omitempty"`
	// LayerDelay is the extra time of a layer during which a gather kernel loads.
	LayerDelay Figure `toml:"layer_delay,omitempty" dim:"time,optional"`
}

// PoolRow is the rate of a kernel that reads a pinned host pool of the given size.
type PoolRow struct {
	PoolGiB float64 `toml:"pool_gib"`
	Figure  `dim:"rate" by:"h2d"`
}

// Saving holds the HBM->DRAM engines.
type Saving struct {
	MemcpyCall Figure `toml:"memcpy_call" dim:"time"` // per block
	GPULaunch  Figure `toml:"gpu_launch" dim:"time"`
	GPUFloor   Figure `toml:"gpu_floor,omitempty" dim:"time,optional"`
	GPURate    Figure `toml:"gpu_rate" dim:"rate" by:"d2h"`
	// Contention is the share of compute lost while the GPU scatter kernel runs.
	Contention Figure       `toml:"contention" dim:"share"`
	FlashCall  Figure       `toml:"flash_call" dim:"time"` // the one memcpy into staging
	Scatter    []ScatterRow `toml:"scatter" rising:"threads"`
}

// ScatterRow is the CPU scatter's rate with the given threads.
type ScatterRow struct {
	Threads int `toml:"threads"`
	Figure  `dim:"rate" by:"cpu"`
}

// Selected is the time of a layer's small kernels if an indexer selects the latents that attention
// reads (DeepSeek sparse attention). The larger kernels have grids.
type Selected struct {
	Launch      Figure `toml:"launch,omitempty" dim:"time,optional"`
	IndexLaunch Figure `toml:"index_launch,omitempty" dim:"time,optional"` // of the indexer
}

// SwapCost is the kernel of hot buffers. One launch serves all requests of a layer. Each request
// has one CTA, which walks the request's buffer and reads missing rows from the host:
//
//	t = max(launch + waves slots scan + max(B / rate, b / request_rate), B / link)
//
// with B the bytes of all rows, b the bytes of the request with most misses, and waves the requests
// divided by the SMs, rounded up. request_rate matters because the reads of one SM do
// not fill the link.
type SwapCost struct {
	Launch Figure `toml:"launch,omitempty" dim:"time,optional"`
	// per wave, for 1,024 slots of a buffer
	Scan Figure `toml:"scan,omitempty" dim:"time,optional"`
	Rate Figure `toml:"rate,omitempty" dim:"rate,optional" by:"h2d"`
	// rate of the rows of one request
	RequestRate Figure `toml:"request_rate,omitempty" dim:"rate,optional" by:"h2d"`
}

// Linears returns the weights of the linears of a layer.
func (s *Shape) Linears() int64 {
	m := s.Model()
	return m.LayerLinears()
}

// Model returns a model of the shape.
func (s *Shape) Model() llm.Model {
	return llm.Model{Hidden: s.Hidden, QHeads: s.QHeads, KVHeads: s.KVHeads, HeadDim: s.HeadDim,
		FFN: s.FFN}
}

// Matches reports whether a model has the shape.
func (s *Shape) Matches(m *llm.Model) bool {
	return s.Hidden == m.Hidden && s.QHeads == m.QHeads && s.KVHeads == m.KVHeads &&
		s.HeadDim == m.HeadDim && s.FFN == m.FFN
}
