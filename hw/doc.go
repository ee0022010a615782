// Package hw describes GPUs, links and models, and predicts the time of a batch step on them. Its
// Device replaces the GPU in simulations of the server.
//
// Reading order, following one step:
//
//   - hw/llm: model shapes and the bytes that follow from them; hw/builtin: files by name or path.
//   - units.go, card.go, kernels.go, engine.go, machine.go: a card, the kernels of a library and
//     the engine, as figures with units and provenance; profile.go, profile_host.go: all three as
//     one Profile; profile_check.go and walk.go validate it, with the tags of fields that
//     internal/tomlfile checks. derive.go derives a card from a measured one.
//   - curve.go, gemm.go: interpolation between measured points, and the lower bound of every
//     prediction.
//   - price.go: Cost prices one part of a layer's work. Each part has a file, as in calibrate:
//     gemm.go, elementwise.go, prefill_attention.go, sparse_prefill.go, memory_bound.go with
//     decode.go; head.go prices the end of a step.
//   - layer_class.go: layers of models that are not plain, with the costs in latent_attention.go,
//     indexer.go, experts.go and narrow.go.
//   - transfer.go: the engines that move n blocks, and their time; swap_in.go, the kernel of hot
//     buffers.
//   - costs.go prices a layer; device.go adds up a step with host_step.go, round_trip.go,
//     layer_overhead.go, moves.go, progressive_timeline.go, save_queue.go (the device-to-host
//     queue), and clock.go, the card's clock.
//   - notes.go: costs asked beyond their data; concepts.go: the cost model without a part.
//   - plan.go: what fits on the card; price.go has the decode iteration of service levels.
//
// Costs are values without state: seconds in float64, SI units inside. Only Device has state, in
// integer nanoseconds.
package hw
