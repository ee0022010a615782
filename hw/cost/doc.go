// Package cost predicts the time of a batch step on a machine of package hw. Its Device replaces
// the GPU in simulations of the server.
//
// Reading order, following one step:
//
//   - curve.go, lattice.go, gemm.go: interpolation between measured points, and the lower bound of
//     every prediction.
//   - price.go: Cost prices one part of a layer's work. Each part has a file, as in calibrate:
//     gemm.go, elementwise.go, prefill_attention.go, sparse_prefill.go, memory_bound.go; head.go
//     prices the end of a step. price.go has the decode iteration of service levels, too.
//   - layer_class.go: layers of models that are not plain, with the costs in latent_attention.go,
//     selected.go, indexer.go, experts.go and narrow.go.
//   - transfer.go: the engines that move n blocks, and their time; swap_in.go, the kernel of hot
//     buffers; all_reduce.go, between GPUs.
//   - costs.go prices a layer; device.go adds up a step with host_step.go, layer_overhead.go,
//     moves.go, prefix_links.go, progressive_timeline.go, save_queue.go (the device-to-host queue),
//     and clock.go, the card's clock.
//   - notes.go: costs asked beyond their data.
//
// Costs are values without state: seconds in float64, SI units inside. Only Device has state, in
// integer nanoseconds.
package cost
