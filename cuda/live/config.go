package live

import (
	"time"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/live/mem"
	"github.com/sparseserve/sparseserve/cuda/weights"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/pattern"
)

// Config describes a device.
type Config struct {
	Spec     *sim.Spec
	Geometry kv.Geometry
	Weights  weights.Source
	KVBytes  int64 // sim.Config.HBMBytes
	Seed     uint64
	// Patterns are what the query heads of each layer attend to in prefill; nil is dense.
	Patterns [][]pattern.Head
	// FindsLines has vertical-slash heads attend to the lines that their indices find; else indices
	// are timed only, and lines are where the cost model assumes them.
	FindsLines bool
	// Longest is how many tokens a request may have: the memory of sparse prefill is allocated for
	// them beforehand. 0: not known, it grows.
	Longest int
	// Selects has decodes attend to what the model's own metadata chose; else it
	// is timed only, and the server's lists count.
	Selects bool
	// Heat is how long linears run before the first step on a GPU, so that it begins on a card at
	// work; a rest follows (afterHeat).
	Heat time.Duration
	// SaveThreads are those of the CPU that copy FlashD2H's saves to their blocks, at most; 0 is
	// saveThreads.
	SaveThreads int
	// LinearRows is how many rows a layer's linears of so many tokens have: above LinearGrid a
	// multiple of it, the next or the one after, never fewer for more tokens; nil: the next.
	LinearRows func(tokens int) int
	// SplitEvery: each n-th step is split into phases; 0: none.
	SplitEvery int64
	// Prompt returns a request's tokens; nil makes them up.
	Prompt func(id int) []int32
	// Finished sees a finished request: prompt and what was generated.
	Finished func(id int, tokens []int32)
	// Logits sees the fp16 logits of every emitted token, for tests; it costs a copy.
	Logits func(id int, position int, logits []cuda.Half)
	// Attended sees how many blocks of its list each KV head of a decode's position attended to, by
	// progressive attention's own count, for tests; it costs a copy.
	Attended func(id, position, layer, head, blocks int)
	// Chosen sees the blocks that each KV head of a decode's position chose, for tests; it costs a
	// copy.
	Chosen func(id, position, layer, head int, blocks []int32)
	// Projected sees queries, keys and values of a layer's tokens, [tokens][HeadsQ + 2 HeadsKV][D],
	// those of prefills rotated; it costs a copy.
	Projected func(layer int, qkv []cuda.Half)
	// Listed sees the lists by which sparse prefill attends, of one layer and some heads of the
	// tokens [from, to) of a request, for tests; it costs a copy.
	Listed func(id, layer, from, to int, l *PrefillLists)
}

// PrefillLists are the lists of heads [From, To), as cuda.MIAttendArgs has them.
type PrefillLists struct {
	From, To                  int
	BlockStride, ColumnStride int
	Blocks, Columns, Counts   []int32
}

// Machine is what the device runs on.
type Machine = cuda.Machine

// Pinned keeps pinned memory from one device to the next.
type Pinned = mem.Pinned

// Counters are what the device has really done, to be compared with what the server counts.
type Counters struct {
	Steps, Loaded, Saved, Layers, RoundTrips int64
	Gated                                    int64 // layers whose launches did not wait for the host

	Uploads, UploadBytes int64 // copies of what the host knows to the GPU
	Calls                int64 // driver calls that enqueue work
	Selected             int64 // blocks that decodes read by lists of the server
	Rounds               int64 // of progressive attention, over all layers
	Ahead                int64 // of Loaded, for rounds of a decode's head that never came

	Growing time.Duration // allocating pinned and device memory; not part of any step
	Saving  time.Duration // computation waiting for space in the save buffer
	Waiting time.Duration // the host waiting for selections

	// The server's time: between Score and Move, or what came before it (with offloading the lists
	// too); before Compute; and between steps.
	Lookup, Lists, Planning time.Duration

	Elapsed  time.Duration // all steps
	Working  time.Duration // of Elapsed, until the host only waits for the GPU's end
	InRounds time.Duration // of Working, in rounds of progressive attention that load
}

// Counters returns what has been done so far.
func (d *Device) Counters() Counters {
	c := d.counters
	c.Uploads, c.UploadBytes = d.stage.Uploads, d.stage.UploadBytes
	return c
}
