package sim

import (
	"iter"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/sim/pattern"
)

// Model describes a model to the server.
type Model struct {
	Layers     int
	KVHeads    int
	Queries    int // query heads that share a KV head; 0 = 1
	MaxContext int
	// TokenValues is the number of fp16 values that a layer-segmented prefill keeps in HBM per token,
	// in addition to KV.
	TokenValues int
	// BoundTokens is the largest number of tokens that decodes attend to in layers with a sliding
	// window or an indexer; 0 if no layer has such a bound.
	BoundTokens int
	// WindowLayers is the number of layers that keep only the KV of the newest BoundTokens tokens,
	// unless Spec.KeepsContexts.
	WindowLayers int
}

// Config describes one server.
type Config struct {
	Spec     Spec
	Model    Model
	Geometry kv.Geometry // uses blocks of Spec.BlockTokens
	HBMBytes int64       // for KV blocks, metadata and prefill buffers
	Seed     uint64
	Device   Device
	Engine   Engine
	Library  *dsa.Library // selections of sparse attention by Spec.Policy
	Prefill  *pattern.Mix // pattern of Spec.PrefillAttention; nil = dense
	// Addressed passes every row, block and slot to the device (addressed.go). All heads must then be
	// simulated.
	Addressed bool
	// DeviceSelects makes decodes attend to the blocks that the device's Score selects. It needs
	// Addressed. Library is not used.
	DeviceSelects bool
	// Swapped returns the number of tokens selected by decodes in all layers of the last step, and
	// how many of these tokens missed the hot buffers. It is set for a device that selects tokens and
	// swaps them in by itself.
	Swapped func() (selected, loaded int64)
	// Recording, if not nil, provides selections instead of Library.
	Recording *dsa.Recording
	// RecordTo records the selections of every decode and head; it may be nil.
	RecordTo *dsa.RecordingWriter
	// Trace records the selections of decodes with their times, for the groups in the cache; it may
	// be nil.
	Trace *kv.Trace
	// RecallProxy records the share of attention that each token's selection covers, where Library
	// provides the selections.
	RecallProxy bool
	// Future yields the requests of the run, in order of arrival, for Spec.PrefixEviction = "belady".
	Future iter.Seq2[Arrival, error]
	// PrefixWorth reports whether loading tokens [from, to) of a prompt, ssd tokens from SSD, is
	// faster than computing them. It is used with Spec.PrefixLoad "cheaper".
	PrefixWorth func(from, to, ssd int) bool
	metrics.Measure
	// Idle is called when virtual time advances with no step running; it may be nil.
	Idle func(des.Time) error
}

// SelectedBlocks returns the number of blocks that a group attends to, including the open block,
// sinks and window.
func SelectedBlocks(spec *Spec) int { return max(1, spec.Selection.BudgetTokens/spec.BlockTokens) }

// microbatch returns the number of blocks per iteration, or 0 if attention is not progressive.
func (c *Config) microbatch() int {
	if !c.Spec.Progressive() {
		return 0
	}
	return c.Spec.Selection.Microbatch
}

// Candidates returns the number of blocks that a group's policy selects in addition to sinks and
// window. Sinks and window count towards the budget.
func Candidates(spec *Spec) int {
	return max(1, SelectedBlocks(spec)-spec.Selection.SinkBlocks-spec.Selection.RecentBlocks)
}
