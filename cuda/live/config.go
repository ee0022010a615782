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
	// Patterns are the attention patterns of each layer's query heads in prefill; nil is dense.
	Patterns [][]pattern.Head
	// FindsLines makes vertical-slash heads attend to the lines that their indices find. Otherwise
	// indices are only timed, and heads attend to the lines that the cost model assumes.
	FindsLines bool
	// Longest is the maximum number of tokens of a request, for which the memory of sparse prefill is
	// allocated in advance. 0: not known, the memory grows.
	Longest int
	// Selects makes decodes attend to the blocks that the model's own metadata selects. Otherwise
	// selection is only timed, and the server's lists are used.
	Selects bool
	// SaveThreads is the maximum number of CPU threads that copy FlashD2H's saves to their blocks; 0
	// is saveThreads.
	SaveThreads int
	// SplitEvery splits each n-th step into phases; 0: none.
	SplitEvery int64
	// Prompt returns a request's tokens; nil generates them.
	Prompt func(id int) []int32
	// Finished receives a finished request: its prompt and its generated tokens.
	Finished func(id int, tokens []int32)
	// Logits receives the fp16 logits of every emitted token, for tests; it costs a copy.
	Logits func(id int, position int, logits []cuda.Half)
	// Attended receives the number of listed blocks to which a KV head of a decode attended, counted
	// by progressive attention, for tests; it costs a copy.
	Attended func(id, position, layer, head, blocks int)
	// Chosen receives the blocks that each KV head of a decode selected, for tests; it costs a copy.
	Chosen func(id, position, layer, head int, blocks []int32)
	// ChosenTokens receives the tokens that the indexer selects for a token in a layer, for tests; it
	// costs a copy. For decodes with hot buffers, misses is the number of its rows that were read from
	// the host; otherwise -1.
	ChosenTokens func(id, position, layer int, tokens []int32, misses int)
	// Projected receives queries, keys and values of a layer's tokens, [tokens][HeadsQ + 2
	// HeadsKV][D], rotated for prefills; it costs a copy.
	Projected func(layer int, qkv []cuda.Half)
	// Listed receives the lists of sparse prefill, of one layer and some heads, for the tokens [from,
	// to) of a request, for tests; it costs a copy.
	Listed func(id, layer, from, to int, l *PrefillLists)
}

// PrefillLists are the lists of heads [From, To), in the layout of cuda.MIAttendArgs.
type PrefillLists struct {
	From, To                  int
	BlockStride, ColumnStride int
	Blocks, Columns, Counts   []int32
}

// Machine is a GPU or the emulator.
type Machine = cuda.Machine

// Pinned keeps pinned memory from one device to the next.
type Pinned = mem.Pinned

// Counters count the device's actual work, for comparison with the server's counts. With latent
// attention, Loaded, Saved and Selected count rows: one token in one layer.
type Counters struct {
	Steps, Loaded, Saved, Layers, RoundTrips int64

	Uploads, UploadBytes int64 // copies from the host's tables to the GPU
	Calls                int64 // driver calls that enqueue work
	Selected             int64 // blocks that decodes read by lists of the server
	Rounds               int64 // of progressive attention, over all layers
	Ahead                int64 // of Loaded, for rounds of a decode's head that never came

	Growing time.Duration // allocating pinned and device memory; not part of any step
	Saving  time.Duration // computation waiting for space in the save buffer
	Waiting time.Duration // the host waiting for selections

	// The server's time: between Score and Move, or the call before it (with offloading including the
	// lists); before Compute; and between steps.
	Lookup, Lists, Planning time.Duration

	Elapsed time.Duration // all steps
}

// Counters returns the counts so far.
func (d *Device) Counters() Counters {
	c := d.counters
	c.Uploads, c.UploadBytes = d.stage.Uploads, d.stage.UploadBytes
	return c
}
