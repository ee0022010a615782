package sim

import (
	"slices"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/pattern"
)

// Device carries out one batch step on real or modelled hardware. The layer loop, selection,
// residency, eviction and scheduling are in this package and the same for both. Calls come in
// the order
//
//	Begin, (Score, Move, Compute) for each layer, Finish
//
// from one goroutine. Score is called only in layers with sparse decode attention. The
// arguments belong to the caller and are valid until the call returns.
type Device interface {
	// Begin takes the batch's metadata and starts the step's clock.
	Begin(*Step) error
	// Score times the scoring of the block metadata of the layer's decodes. With
	// Config.DeviceSelects it also selects.
	Score(layer int, w *Work) error
	// Move enqueues DRAM->HBM loads, which Compute of the same layer waits for, and HBM->DRAM
	// saves, which overlap with it.
	Move(*kv.Moves) error
	// Compute runs attention and linears of one layer. Saves of the layer's Move can start when
	// it ends.
	Compute(layer int, w *Work) error
	// Finish waits for the step to end.
	Finish() (Timing, error)
	// Drain waits until all saves are in DRAM and returns when that was, counted from the last
	// step's start. The server calls it when nothing else can run and no Finish has reported
	// some saves.
	Drain() (des.Time, error)
}

// Repeater is a Device that prices layers of the same work at once: Repeat does what Compute does
// for each of n layers, from the given one on, whose Score and Move are not called.
type Repeater interface {
	Repeat(layer, n int, w *Work) error
	// Next is Begin, Repeat of all layers and Finish of a step like the one before, which was such a
	// step too and at whose end it begins: the same batch, without drafts, of which only contexts are
	// longer. ok is false, and nothing done, where the device has to be told all of it.
	Next(s *Step, w *Work) (timing Timing, ok bool)
}

// Step is the metadata of one batch step.
type Step struct {
	Index    int64    // steps before this one
	Start    des.Time // virtual time at which the step starts
	Requests int      // requests in the batch
	Sampled  int      // requests that emit a token: rows of the LM head
	// DRAMBytes is the size of the host pool in use. Zero-copy reads slow down as it grows (TLB
	// reach).
	DRAMBytes int64
	// FreedBlocks counts blocks freed since the last step by requests that ended or were
	// preempted, in HBM or not, of all layers and KV heads.
	FreedBlocks int64
	// Prefix is what the batch's requests load of their prompts from below HBM in this step;
	// AwaitSaves has the step wait for what was saved before it: its blocks are taken.
	Prefix     PrefixLoad
	AwaitSaves bool
	// Rows and Dropped are for devices that compute (Config.Addressed): the requests of the
	// batch, decodes first, and those whose KV was given up since the last step.
	Rows    []Row
	Dropped []Dropped
}

// Work is what one layer computes in one step.
type Work struct {
	Tokens  int    // rows of the layer's linears: decodes + prefill tokens
	Prefill []Span // prefill attention, one span a request
	// Patterns are what the layer's query heads attend to in prefill. Empty: all, densely.
	Patterns []pattern.Group
	Decodes  int // requests with one query token each, and those of their drafts
	// Drafts are the tokens that each of them verifies beyond its newest: as many queries more, which
	// read its KV together.
	Drafts int
	// Swapped is those of them whose selections are looked up in hot buffers.
	Swapped int
	// DecodeTokens is the KV tokens that decode attention reads for each KV head, summed over
	// requests: contexts when dense, selections when sparse.
	DecodeTokens int64
	// RereadTokens is those of dense attention's DecodeTokens that are in blocks which the batch
	// reads for another request already: prefixes that decodes share.
	RereadTokens int64
	// BoundedTokens is the same of dense attention in layers whose decodes attend to
	// Model.BoundTokens at most.
	BoundedTokens int64
	// ScoredBlocks is the blocks whose metadata each KV head scores, summed over requests; 0
	// when attention is dense.
	ScoredBlocks int64
	// Digests counts the requests with blocks that become full in the layer and need metadata,
	// DigestTokens the tokens of these blocks; 0 when no layer selects.
	Digests      int
	DigestTokens int64
	Sparse       bool // decode attention runs over selected blocks
	// Rounds are the iterations of progressive attention in order, among which DecodeTokens and
	// the layer's loads are divided. Empty where attention is not progressive.
	Rounds []Round
	// Lists and Tables are for devices that compute (Config.Addressed): what the decodes read,
	// and for each prefill span its slots. With Config.DeviceSelects, Score fills Lists.Count
	// and Lists.Block, in any order; without Lists, Compute reads what Score selected.
	Lists *Lists
	// Ahead is, in Score, the Lists that Compute of the layer will have: where they are is known, and
	// only the layer's Move ends their writing. A device may launch what reads them before it is told
	// what they say, and may keep it until Compute. Nil where the lists' length is not known before.
	Ahead  *Lists
	Tables []Table
}

// SameBatch says whether two layers have the same batch: rounds, lists and tables may differ.
func (w *Work) SameBatch(o *Work) bool {
	return w.Tokens == o.Tokens &&
		slices.Equal(w.Prefill, o.Prefill) && slices.Equal(w.Patterns, o.Patterns) &&
		w.Decodes == o.Decodes && w.Drafts == o.Drafts && w.DecodeTokens == o.DecodeTokens &&
		w.RereadTokens == o.RereadTokens && w.BoundedTokens == o.BoundedTokens &&
		w.Sparse == o.Sparse && w.ScoredBlocks == o.ScoredBlocks &&
		w.Digests == o.Digests && w.DigestTokens == o.DigestTokens
}

// Round is one iteration of progressive attention over a batch: what the heads that have not
// met the threshold attend to, and the loads that it needs.
type Round struct {
	Tokens int64 // for each KV head, summed over requests
	Loads  int64 // blocks
}

// Span is one request's prefill attention in one layer: Query tokens attend causally to Prefix
// earlier tokens and themselves.
type Span struct {
	Query, Prefix int
}

// Timing is the measured or modelled time of one step. Elapsed is the sum of the phases.
type Timing struct {
	Elapsed des.Time
	Phases  Phases
	// Busy is how long GPU and link worked since the end of the step before; zero where the device
	// does not know.
	Busy Busy
	// SavesDone is when every save of the first SavedSteps steps is in DRAM, counted from the
	// step's start. A modelled device predicts it, its own step included; a real one reports
	// completed saves.
	SavesDone  des.Time
	SavedSteps int64
	// Extrapolated is a set of cost models used beyond their calibration; bit i is the i-th
	// name of the device's own list.
	Extrapolated uint32
}

// Busy is the time in which each part of the machine worked, whatever else did.
type Busy struct{ GPU, H2D, D2H des.Time }

// Phases splits the time on the step's critical path.
type Phases struct {
	Linears, PrefillAttention, DenseAttention, SparseAttention des.Time
	// finding what sparse prefill attends to
	PrefillIndex des.Time
	Scoring      des.Time // metadata scores, top-k
	LoadStall    des.Time // compute waits for H2D
	SaveStall    des.Time // compute waits for D2H, is slowed by it, or copies for it
	Head         des.Time // embedding, LM head, sampling
	AllReduce    des.Time // between the GPUs that share a layer
	Host         des.Time // planning, launches, per-layer synchronisation
	Unsplit      des.Time // of steps whose device does not split their time
}

// Sum returns the total of all phases.
func (p *Phases) Sum() des.Time {
	return p.Linears + p.PrefillAttention + p.PrefillIndex + p.DenseAttention + p.SparseAttention +
		p.Scoring + p.LoadStall + p.SaveStall + p.Head + p.AllReduce + p.Host + p.Unsplit
}

// Add adds q to p, phase by phase.
func (p *Phases) Add(q *Phases) {
	p.Linears += q.Linears
	p.PrefillAttention += q.PrefillAttention
	p.PrefillIndex += q.PrefillIndex
	p.DenseAttention += q.DenseAttention
	p.SparseAttention += q.SparseAttention
	p.Scoring += q.Scoring
	p.LoadStall += q.LoadStall
	p.SaveStall += q.SaveStall
	p.Head += q.Head
	p.AllReduce += q.AllReduce
	p.Host += q.Host
	p.Unsplit += q.Unsplit
}

// Repeat adds n times what p has more than before.
func (p *Phases) Repeat(before *Phases, n des.Time) {
	p.Linears += n * (p.Linears - before.Linears)
	p.PrefillAttention += n * (p.PrefillAttention - before.PrefillAttention)
	p.PrefillIndex += n * (p.PrefillIndex - before.PrefillIndex)
	p.DenseAttention += n * (p.DenseAttention - before.DenseAttention)
	p.SparseAttention += n * (p.SparseAttention - before.SparseAttention)
	p.Scoring += n * (p.Scoring - before.Scoring)
	p.LoadStall += n * (p.LoadStall - before.LoadStall)
	p.SaveStall += n * (p.SaveStall - before.SaveStall)
	p.Head += n * (p.Head - before.Head)
	p.AllReduce += n * (p.AllReduce - before.AllReduce)
	p.Host += n * (p.Host - before.Host)
	p.Unsplit += n * (p.Unsplit - before.Unsplit)
}
