// Package hw describes GPUs, links and models, and predicts how long a batch step takes on
// them. Its Device stands in for the GPU when the server is simulated.
//
// Reading order, following one step:
//
//   - model.go, library.go, config_json.go: shapes of the models and the bytes that follow
//     from them; config_types.go, config_features.go: which models have no such shape.
//   - units.go, card.go, kernels.go, engine.go, machine.go: a card, the kernels that a library
//     runs on it and the engine around them, as figures with units and provenance;
//     profile.go, profile_host.go: all three as one Profile; profile_check.go, walk.go and
//     tomlfile.go with tomllines.go read and validate files. derive.go gets a card from a
//     measured one; retired.go knows the names that keys had before.
//   - curve.go, roofline.go: interpolation between measured points, and the floor of physics
//     below every prediction.
//   - price.go: Cost prices one part of a layer's work. The parts have the files of
//     calibrate's slices: gemm.go, elementwise.go, prefill_attention.go, memory_bound.go with
//     decode.go and scoring.go, progressive.go, block_close.go; head.go is a step's end.
//   - layer_class.go: layers of models that are not plain (model_latent.go, model_index.go,
//     model_mixture.go, model_window.go; config_classes.go reads them), with the costs of
//     latent_attention.go, indexer.go, experts.go and narrow.go.
//   - transfer.go: an engine's time for n blocks, with flash_h2d.go, flash_d2h.go,
//     gpu_scatter.go and memcpy.go.
//   - costs.go prices a layer; device.go passes the times of a step with host_step.go,
//     round_trip.go, layer_overhead.go, moves.go, progressive_timeline.go, save_queue.go (the
//     device-to-host queue), and clock.go with clock_chunk.go, of
//     prefills, and clock_decode.go; clock_probes.go prices what calibrate measures of the clock.
//   - notes.go: which cost was asked beyond its data; concepts.go: the model without a part.
//   - plan.go: what fits on the card; slo.go: the decode iteration that service levels are
//     multiples of.
//
// Costs are values without state: seconds in float64, SI units inside. Only Device keeps
// state, in integer nanoseconds.
package hw
