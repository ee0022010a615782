// Package latent is the device that runs a model with latent attention and an indexer (DSA), as a
// sim.Device: fp16, random weights, a dense MLP. All KV is in HBM. With hot buffers (HiSparse) it
// is in pinned host memory, with a buffer for each request and layer in HBM.
//
// The server decides the requests of a step and counts their memory. The model decides which tokens
// a query attends to: its indexer scores the context, a top-k selects, and with buffers the swap-in
// kernel looks up, evicts and loads. The host waits for none of these: a layer is a list of
// launches (layer.go) over arrays that Begin uploads once (rows.go). Finish reads the tokens and
// the number of missed rows of each request. Follow a request's memory in requests.go: rows in HBM
// while it prefills, then host pages and buffers (settle).
//
// Kernels are simple and not tuned (cuda/latent.cu, cuda/latent_attend.cu), so times do not
// represent a serving engine. Every token of a prompt has its own selection, as a decode has.
package latent
