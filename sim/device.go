package sim

import (
	"slices"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/sim/pattern"
)

// Device runs batch steps on real or modelled hardware. The layer loop, selection, residency,
// eviction and scheduling are in this package and are the same for both. Calls come from one
// goroutine, in the order
//
// # Begin, (Score, Move, Compute) for each layer, Finish
//
// Score is called only in layers with sparse decode attention. The arguments belong to the caller
// and are valid until the call returns.
type Device interface {
	// Begin takes the batch's metadata and starts the step's clock.
	Begin(*Step) error
	// Score times the scoring of the block metadata of the layer's decodes. With
	// Config.DeviceSelects it also selects.
	Score(layer int, w *Work) error
	// Move enqueues DRAM->HBM loads and HBM->DRAM saves. Compute of the same layer waits for the
	// loads and overlaps with the saves.
	Move(*kv.Moves) error
	// Compute runs attention and linears of one layer. Saves of the layer's Move can start when
	// Compute ends.
	Compute(layer int, w *Work) error
	// Finish waits for the step to end.
	Finish() (metrics.Timing, error)
	// Drain waits until all saves are in DRAM and returns that time, relative to the last step's
	// start. The server calls it when nothing else can run and some saves were not yet reported by
	// Finish.
	Drain() (des.Time, error)
}

// Repeater is a Device that prices identical layers at once. Repeat replaces Compute for n layers
// from the given layer on. Score and Move are not called for these layers.
type Repeater interface {
	Repeat(layer, n int, w *Work) error
	// Next replaces Begin, Repeat of all layers and Finish for a step that starts at the end of the
	// previous one and has the same batch, without drafts. Only contexts are longer. The previous
	// step must also have used Repeat for all layers or Next. ok is false, without any effect, if the
	// device needs the full sequence of calls.
	Next(s *Step, w *Work) (timing metrics.Timing, ok bool)
}

// Step is the metadata of one batch step.
type Step struct {
	Index    int64    // steps before this one
	Start    des.Time // virtual time at which the step starts
	Requests int      // requests in the batch
	Sampled  int      // requests that emit a token: rows of the LM head
	// DRAMBytes is the size of the used part of the host pool. Zero-copy reads slow down as it grows
	// (TLB reach).
	DRAMBytes int64
	// Prefix is the prompt KV that the batch loads from below HBM in this step. AwaitSaves makes the
	// step wait for earlier saves, because it reuses their blocks.
	Prefix     PrefixLoad
	AwaitSaves bool
	// Rows and Dropped are for devices that compute (Config.Addressed). Rows are the requests of the
	// batch, decodes first. Dropped are requests whose KV was released since the last step.
	Rows    []Row
	Dropped []Dropped
}

// Work describes the computation of one layer in one step.
type Work struct {
	Tokens  int    // rows of the layer's linears: decodes + prefill tokens
	Prefill []Span // prefill attention, one span per request
	// Patterns are the prefill attention patterns of the layer's query heads. Empty: all dense.
	Patterns []pattern.Group
	Decodes  int // requests with one query token each, plus their drafts
	// Drafts is the number of draft tokens that each decode verifies in addition to its newest token.
	// Their queries read the request's KV together.
	Drafts int
	// Swapped is the number of decodes' queries whose selections are looked up in hot buffers.
	Swapped int
	// DecodeTokens is the number of KV tokens that decode attention reads per KV head, summed over
	// requests: contexts when dense, selections when sparse.
	DecodeTokens int64
	// RereadTokens is the part of dense DecodeTokens in blocks that the batch already reads for
	// another request: shared prefixes.
	RereadTokens int64
	// BoundedTokens replaces DecodeTokens in layers whose dense decode attention reads at most
	// Model.BoundTokens tokens.
	BoundedTokens int64
	// ScoredBlocks is the number of blocks whose metadata each KV head scores, summed over requests;
	// 0 when attention is dense.
	ScoredBlocks int64
	Sparse       bool // decode attention runs over selected blocks
	// Rounds are the iterations of progressive attention in order. DecodeTokens and the layer's loads
	// are divided among them. Empty if attention is not progressive.
	Rounds []Round
	// Lists and Tables are for devices that compute (Config.Addressed): the blocks that decodes read,
	// and the slots of each prefill span. With Config.DeviceSelects, Score fills Lists.Count and
	// Lists.Block, in any order; without Lists, Compute reads the blocks that Score selected.
	Lists  *Lists
	Tables []Table
}

// SameBatch reports whether two layers have the same batch. Rounds, lists and tables may differ.
func (w *Work) SameBatch(o *Work) bool {
	return w.Tokens == o.Tokens &&
		slices.Equal(w.Prefill, o.Prefill) && slices.Equal(w.Patterns, o.Patterns) &&
		w.Decodes == o.Decodes && w.Drafts == o.Drafts && w.DecodeTokens == o.DecodeTokens &&
		w.RereadTokens == o.RereadTokens && w.BoundedTokens == o.BoundedTokens &&
		w.Sparse == o.Sparse && w.ScoredBlocks == o.ScoredBlocks
}

// Round is one iteration of progressive attention over a batch: the tokens read by heads that have
// not met the threshold, and the loads that the round needs.
type Round struct {
	Tokens int64 // per KV head, summed over requests
	Loads  int64 // blocks
}

// Span is one request's prefill attention in one layer: Query tokens attend causally to Prefix
// earlier tokens and themselves.
type Span struct {
	Query, Prefix int
}
