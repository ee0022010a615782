package metrics

import "github.com/sparseserve/sparseserve/sim/des"

// Request is the record of one request.
type Request struct {
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

	// With a recall proxy, over decode tokens: the mean share of attention covered by selections,
	// and the mean square of the share missed.
	Recall, Missed2 float64
}

// Life is what a run notes of a request. It moves with the request to another replica.
type Life struct {
	Request
	Started  bool       // it has been in a batch
	Recalled Recalled   // set where the run asks for it
	gaps     []des.Time // times between its tokens, with a Cutoff
}

// TPOT returns the mean TBT, 0 for a request of one token.
func (r *Request) TPOT() des.Time {
	if r.Output < 2 {
		return 0
	}
	return (r.LastToken - r.FirstToken) / des.Time(r.Output-1)
}

// Step is the record of one step.
type Step struct {
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
	Prefix              PrefixStats
	Timing              Timing
}

// Timing is the measured or modelled time of one step. Elapsed is the sum of the phases.
type Timing struct {
	Elapsed des.Time
	Phases  Phases
	// Busy is the busy time of GPU and link since the end of the previous step; zero if the device
	// does not measure it.
	Busy Busy
	// SavesDone is the time when all saves of the first SavedSteps steps are in DRAM, relative to the
	// step's start. A modelled device predicts it and includes the current step. A real device
	// reports completed saves.
	SavesDone  des.Time
	SavedSteps int64
	// Extrapolated is the set of cost models used beyond their calibrated range. Bit i stands for
	// entry i of the device's own list of names.
	Extrapolated uint32
}

// Busy is the busy time of each part of the machine; the times may overlap.
type Busy struct{ GPU, H2D, D2H des.Time }
