package sim

import (
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/prefix"
	"github.com/sparseserve/sparseserve/sim/sched"
)

// request is one request inside the server.
type request struct {
	*sched.Request
	arrival Arrival
	prompt  int // tokens after truncation

	seq     *kv.Seq      // nil without offloading, and while it waits
	keys    []uint64     // of its blocks in DRAM, where it has begun and they are known
	table   prefix.Table // its blocks, where prefixes are shared
	pinned  bool         // its chunked prefill holds HBM
	buffers int64        // bytes of a running layer-segmented prefill

	prefilled int64 // token-layers of the running prefill

	gives    int   // tokens of the decode step that runs
	steps    int   // decode steps so far, the clock of its selections
	selected int64 // blocks in the last of them, over the sparse layers; where its algorithm decides
	grid     int   // context grid of its selections, -1 all blocks
	lastGrid int   // that of the step before
	cursors  []dsa.Cursor
	cycles   []*dsa.Cycle
	reuses   []*dsa.Reuse // of hot buffers, by cursor
	reused   int          // context grid that they are of
	served   int          // eighths of the context that buffers serve
	filled   int          // steps since its hot buffers were empty
	layers   []*dsa.Layer // sparse ones, where their heads decide together;
	used     []int        // of each, candidates that a head attends to
	latest   *dsa.Latest  // of those, selections of the sample; or all that the device chose
	replay   *dsa.Replay  // or a recording

	life
	load load // that it is to its replica
}

// life is what a request has come to. It goes with the request to another replica.
type life struct {
	recalled recalled   // of Config.RecallProxy
	gaps     []des.Time // between its tokens, with Config.Cutoff

	scheduled, first, last des.Time // first scheduled, first and last token
	longest                des.Time // between two tokens
	started                bool
	hit                    int // tokens that were cached when it first started
	hitDRAM, hitSSD        int // of them, below HBM
	preemptions, retries   int
}

// RequestRecord is what a run keeps of one request.
type RequestRecord struct {
	ID      int
	Replica int // of a fleet, that served it to its end, or rejected it
	Retries int // times that a replica failed under it
	Set     string
	Given   int // prompt tokens as the trace has them
	Prompt  int // and after truncation: what was served, or rejected
	Output  int
	// Hit is the tokens of the prompt that were cached when it was first scheduled, and of them
	// those below HBM.
	Hit, HitDRAM, HitSSD int
	Arrival              des.Time
	Scheduled            des.Time // first time in a batch
	FirstToken           des.Time
	LastToken            des.Time
	LongestTBT           des.Time // 0 for a request of one token
	Preemptions          int
	Rejected             string // reason; empty when completed

	// Of Config.RecallProxy, over decode tokens: share of the attention held, and mean square
	// of the share missed.
	Recall, Missed2 float64
}

// TPOT returns the mean TBT, 0 for a request of one token.
func (r *RequestRecord) TPOT() des.Time {
	if r.Output < 2 {
		return 0
	}
	return (r.LastToken - r.FirstToken) / des.Time(r.Output-1)
}

// StepRecord is what a run keeps of one step.
type StepRecord struct {
	Index              int64 // of the replica
	Replica            int   // of a fleet
	Start              des.Time
	Decodes, Prefills  int
	PrefillTokenLayers int64 // tokens times layers that each runs through
	Recomputed         int64 // of PrefillTokenLayers, KV that a preemption had lost
	Waiting            int
	Selected, Loaded   int64 // blocks, whole model
	Resumed            int64 // of Loaded, for chunked prefills that had been set back
	Ahead              int64 // of Loaded, for rounds of progressive attention that never came
	Rounds             int64 // of progressive attention, over all layers
	Saved              int64
	Evicted            int64 // since the end of the step before
	Tokens             int   // emitted at its end
	// HBMBytes of KV blocks, metadata and prefill buffers, DRAMBytes of the KV of all requests
	// that offload.
	HBMBytes, DRAMBytes int64
	BatchFull, KVFull   bool // as Uses has it
	H2DBytes, D2HBytes  int64
	Prefix              PrefixUse
	Timing              Timing
}

// Recorder sees a run as it happens. Its arguments are valid during the call.
type Recorder interface {
	Request(*RequestRecord) error
	// Gap is the time between two successive tokens of a request.
	Gap(des.Time)
	Step(*StepRecord) error
}
