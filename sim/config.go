package sim

import (
	"iter"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/pattern"
)

// Model is what the server needs to know of a model.
type Model struct {
	Layers     int
	KVHeads    int
	Queries    int // query heads that share a KV head; 0 = 1
	MaxContext int
	// TokenValues of fp16 are what a token of a layer-segmented prefill has in HBM besides its KV.
	TokenValues int
	// BoundTokens is what decodes attend to at most in layers that have such a bound, of a window or
	// an indexer; 0: no layer has one.
	BoundTokens int
	// WindowLayers keep the KV of the newest BoundTokens only.
	WindowLayers int
}

// Config describes one server.
type Config struct {
	Spec     Spec
	Model    Model
	Geometry kv.Geometry // of Spec.BlockTokens
	HBMBytes int64       // for KV blocks, metadata and prefill buffers
	Seed     uint64
	Device   Device
	Engine   Engine
	Library  *dsa.Library // selections of sparse attention, by Spec.Policy
	Prefill  *pattern.Mix // of Spec.PrefillAttention; nil = dense
	// Addressed names every row, block and slot to the device (addressed.go), which needs all
	// heads to be simulated.
	Addressed bool
	// Do carries out loops whose iterations are independent, when Addressed; nil does them one
	// by one.
	Do des.Do
	// DeviceSelects has decodes attend to what the device's Score chose; needs Addressed.
	// Library is not used.
	DeviceSelects bool
	// Swapped returns how many tokens the layers of the last step's decodes selected, and how many
	// of them hot buffers lacked, of a device that selects tokens and swaps them in by itself.
	Swapped func() (selected, loaded int64)
	// Recording gives selections in place of Library when it is not nil.
	Recording *dsa.Recording
	// Recorder notes what every decode selects, of all heads; it may be nil.
	RecordTo *dsa.RecordingWriter
	// Trace records what decodes select, of the groups in the cache, and when; it may be nil.
	Trace *kv.Trace
	// RecallProxy records the share of attention that each token's selections hold, where
	// Library gives them.
	RecallProxy bool
	// Future yields the requests of the run, in order of arrival, for Spec.PrefixEviction = "belady".
	Future iter.Seq2[Arrival, error]
	// PrefixWorth says whether tokens [from, to) of a prompt, of them so many on SSD, are loaded
	// faster than they are computed; of Spec.PrefixLoad "cheaper".
	PrefixWorth func(from, to, ssd int) bool
	// Good says whether a request that was served kept the service level; nil: nobody asks.
	Good func(*RequestRecord) bool
	// LongWait is the wait for the first step, in seconds, that the service level allows: a queue that
	// grows is worth a warning beyond it, and beyond a second.
	LongWait float64
	// Cutoff leaves the start or the end of the run out of its metrics.
	Cutoff Cutoff
	// CardBytes is the card's HBM, of which FixedBytes hold weights, runtime and activations; 0:
	// not known.
	CardBytes, FixedBytes int64
	// Idle is called when virtual time advances with no step running; it may be nil.
	Idle func(des.Time) error
}

// SelectedBlocks returns how many blocks a group attends to, the open block, sinks and window
// included.
func SelectedBlocks(spec *Spec) int { return max(1, spec.Selection.BudgetTokens/spec.BlockTokens) }

// microbatch is the blocks of one iteration, 0 where attention is not progressive.
func (s *Server) microbatch() int {
	if !s.Spec.Progressive() {
		return 0
	}
	return s.Spec.Selection.Microbatch
}

// Candidates returns how many blocks a group's policy picks in addition to the sinks and the
// window,
// which are charged to the budget.
func Candidates(spec *Spec) int {
	return max(1, SelectedBlocks(spec)-spec.Selection.SinkBlocks-spec.Selection.RecentBlocks)
}
