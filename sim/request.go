package sim

import (
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/memory"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/sim/sched"
)

// request is one request inside the server.
type request struct {
	*sched.Request
	arrival Arrival

	seq     *kv.Seq      // nil without offloading, and while the request waits
	keys    []uint64     // of its blocks in DRAM; set after it started, if known
	granted memory.Grant // of the request, reused by later ones
	pinned  bool         // its chunked prefill holds HBM
	buffers int64        // bytes of a running layer-segmented prefill

	prefilled int64 // token-layers of the running prefill

	gives int // tokens that the running decode step emits
	choice
	swap

	record metrics.Life
	load   Load // load that it adds to its replica
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
	layers   []*dsa.Layer   // sparse layers, if the heads of a layer decide together
	used     []int          // by layer, candidates that a head attends to
	latest   *dsa.Latest    // selections of the sampled groups, or of the device
	replay   *dsa.Replay    // set when a recording is replayed
	recalls  [][]dsa.Recall // by counted group, over one cycle of its stream
}

// swap is the hot buffers of a request.
type swap struct {
	reuses []*dsa.Reuse // reuse profiles, by cursor
	reused int          // context grid of reuses
	served int          // eighths of the context that buffers cache
	filled int          // steps since the buffers were empty
}

// Recorder receives the records of a run as it proceeds. Arguments are valid only during the call.
type Recorder interface {
	Request(*metrics.Request) error
	// Gap receives the time between two successive tokens of a request.
	Gap(des.Time)
	Step(*metrics.Step) error
}
