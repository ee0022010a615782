// Package live is the device that runs the model, in fp16, as a sim.Device, with its KV in HBM and
// pinned host memory: a Llama-architecture model, or one with latent attention and an indexer.
//
// The server decides (which requests, blocks and slots, what to load); this package executes and
// measures. A Device has what all models share, and an attention (device.go): paged (paged.go) or
// latent (latent.go). Follow one step. Begin (device.go) gives the batch's rows pages of host
// memory or HBM (request.go) and writes what the step needs into staging memory. For each layer,
// Score (selection.go) gathers the rows (rows.go), computes Q, K and V (layer.go), scores the
// blocks and selects, which counts with Config.Selects; Move (loads.go) notes the misses; Compute
// (layer.go, attention.go, prefill.go) uploads the server's lists and the rest of the layer's
// arrays at once, loads the misses, writes K and V to their blocks, attends, saves the blocks that
// became full (closed.go, save.go; before attention where prompts or rounds attend), and runs the
// MLP. Finish (device.go, head.go) picks the tokens and waits; clock.go splits the time into
// phases.
//
// With latent attention, Compute selects tokens by the model's own indexer, and with hot buffers
// loads what they miss: Score and Move do nothing.
//
// Work for streams goes through package queue, whose thread makes the driver's calls during the
// server's bookkeeping. The queue keeps the first failure, so code here launches without checks and
// every method of the device ends with queue.Err. Memory is in package mem.
//
// It runs on any cuda.Machine: a GPU, or the emulator, which checks every access.
//
// With offload.lookup = "gpu" the GPU finds the slots of the server's lists (lookup.go), and Move
// gives changes to its tables in place of loads. With progressive attention (PSA), progressive.go
// and rounds.go replace loads and decode attention of Compute: both run in rounds.
//
// With sparse prefill (patterns.go) each head attends by its own pattern: indices.go plans, for
// each chunk of a prompt, the indices and the attention, in the memory that index_memory.go sizes;
// lines.go replaces the lines of random weights. Projections (projections.go) returns a prompt's
// queries, keys and values, for the search of patterns.
//
// CallRecorder (recorder.go) records the calls of each step, so that a model can price the same
// batches.
//
// Unlike a serving system on a full card, metadata, prefill buffers and activations are outside the
// slots that the server counts them in, so the card needs that much more memory. A request's tokens
// are derived from its number, because workloads have lengths only.
package live
