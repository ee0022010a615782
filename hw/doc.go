// Package hw describes GPUs, links and models, and predicts how long a batch
// step takes on them. Its Device stands in for the GPU when the server is
// simulated.
//
// Reading order, following one step:
//
//   - model.go, library.go, config_json.go: shapes of the models and the bytes
//     that follow from them; config_types.go, config_features.go: which models
//     have no such shape.
//   - units.go, profile.go, profile_host.go, profile_load.go: a GPU and its host
//     as figures with units and provenance; profiles/*.toml holds the built-in ones.
//   - curve.go, roofline.go: interpolation between measured points, and the
//     floor of physics below every prediction.
//   - linears.go, pointwise.go, prefill.go, attention.go, head.go: one cost
//     model each, waves.go: how lists become waves of CTAs; load.go and save.go:
//     the transfer engines, ring.go: the copy before a save, copies.go: a memcpy
//     a block of either; roundtrip.go: a layer's way to the CPU and back.
//   - chunk.go: what a chunk takes and draws by the card's clock; clock.go: how that
//     clock moves; clock_seconds.go: its probes; gaps.go: between a layer's kernels.
//   - price.go: each cost model alone, for calibration and plots.
//   - costs.go: one layer's price; savequeue.go: the D2H queue; waits.go: calls
//     that queue for the driver; device.go: the
//     time line of a step; notes.go: which model was asked beyond its data.
//   - plan.go: what fits on the card; slo.go: the decode iteration that
//     service levels are multiples of.
//
// Cost models are values without state: seconds in float64, SI units inside.
// Only Device keeps state, in integer nanoseconds.
package hw
