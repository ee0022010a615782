package sim

import (
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/memory"
	"github.com/sparseserve/sparseserve/sim/sched"
)

// request is one request inside the server.
type request struct {
	*sched.Request
	arrival Arrival

	seq     *kv.Seq      // nil without offloading, and while the request waits
	keys    []uint64     // of its blocks in DRAM; set after it started, if known
	table   memory.Table // its blocks, with a prefix cache
	pinned  bool         // its chunked prefill holds HBM
	buffers int64        // bytes of a running layer-segmented prefill

	prefilled int64 // token-layers of the running prefill

	gives int // tokens that the running decode step emits
	choice
	swap

	life
	load load // load that it adds to its replica
}

// choice is the selections of a request.
type choice struct {
	steps    int   // time axis of its selections: the position of the step's first query
	moved    int   // positions from the first query of the step before to this step's
	selected int64 // blocks selected in the last step, over sparse layers
	grid     int   // context grid of its selections; -1: all blocks are selected
	lastGrid int   // grid of the previous step
	cursors  []dsa.Cursor
	cycles   []*dsa.Cycle
	layers   []*dsa.Layer // sparse layers, if the heads of a layer decide together
	used     []int        // by layer, candidates that a head attends to
	latest   *dsa.Latest  // selections of the sampled groups, or of the device
	replay   *dsa.Replay  // set when a recording is replayed
}

// swap is the hot buffers of a request.
type swap struct {
	reuses []*dsa.Reuse // reuse profiles, by cursor
	reused int          // context grid of reuses
	served int          // eighths of the context that buffers cache
	filled int          // steps since the buffers were empty
}

// life is the history of a request. It moves with the request to another replica.
type life struct {
	recalled recalled   // set with Config.RecallProxy
	gaps     []des.Time // times between its tokens, with Config.Cutoff

	record  RequestRecord
	started bool
}

// RequestRecord is the record of one request.
type RequestRecord struct {
	ID      int
	Replica int // replica of a fleet that finished or rejected it
	Retries int // restarts because its replica failed
	Set     string
	Given   int // prompt tokens in the trace
	Prompt  int // prompt tokens after truncation
	Output  int
	// Hit is the number of cached prompt tokens when it was first scheduled. HitDRAM and HitSSD are
	// the parts below HBM.
	Hit, HitDRAM, HitSSD int
	Arrival              des.Time
	Scheduled            des.Time // first time in a batch
	FirstToken           des.Time
	LastToken            des.Time
	LongestTBT           des.Time // 0 for a request of one token
	Preemptions          int
	Rejected             string // reason; empty when completed

	// With Config.RecallProxy, over decode tokens: the mean share of attention covered by selections,
	// and the mean square of the share missed.
	Recall, Missed2 float64
}

// TPOT returns the mean TBT, 0 for a request of one token.
func (r *RequestRecord) TPOT() des.Time {
	if r.Output < 2 {
		return 0
	}
	return (r.LastToken - r.FirstToken) / des.Time(r.Output-1)
}

// StepRecord is the record of one step.
type StepRecord struct {
	Index              int64 // step number on the replica
	Replica            int   // number in the fleet
	Start              des.Time
	Decodes, Prefills  int
	PrefillTokenLayers int64 // tokens times layers
	Recomputed         int64 // part of PrefillTokenLayers that was lost to a preemption
	Waiting            int
	Selected, Loaded   int64 // blocks, whole model
	Resumed            int64 // part of Loaded for chunked prefills that resume
	Ahead              int64 // part of Loaded for rounds of progressive attention that did not run
	Rounds             int64 // of progressive attention, over all layers
	Saved              int64
	Evicted            int64 // since the end of the previous step
	Tokens             int   // emitted at its end
	// HBMBytes is the size of KV blocks, metadata and prefill buffers. DRAMBytes is the size of all
	// requests' KV with offloading.
	HBMBytes, DRAMBytes int64
	BatchFull, KVFull   bool // see Uses
	H2DBytes, D2HBytes  int64
	Prefix              PrefixUse
	Timing              Timing
}

// Recorder receives the records of a run as it proceeds. Arguments are valid only during the call.
type Recorder interface {
	Request(*RequestRecord) error
	// Gap receives the time between two successive tokens of a request.
	Gap(des.Time)
	Step(*StepRecord) error
}
