// Package latent is the device that does the work of a model with latent attention and an indexer
// (DSA), as a sim.Device: fp16, random weights, a dense MLP. All KV is in HBM, or with hot buffers
// (HiSparse) in pinned host memory, and a buffer of each request and layer in HBM.
//
// The server decides which requests a step has and counts their memory; which tokens a query
// attends to is the model's: its indexer scores the context, a top-k selects, and with buffers the
// swap-in kernel finds, evicts and loads. The host waits for none of it: a layer is a list of
// launches (layer.go) over arrays that Begin uploads once (rows.go). Finish reads the tokens and
// how many rows each request missed. Follow a request's memory in requests.go: rows in HBM while it
// prefills, then host pages and buffers (settle).
//
// Kernels are simple and not tuned (cuda/latent.cu, cuda/latent_attend.cu): times are of this
// program, and no engine's. Every token of a prompt selects for itself, as a decode does.
package latent
