// Package live is the device that does the work: a Llama-architecture model in fp16 behind sim.Device, with its KV cache in HBM slots and
// pinned host memory.
//
// The server decides (which requests, which blocks, which slots, what to load); this package carries out and tells the time. Follow one step:
// Begin (device.go) takes the batch's rows, gives them pages of host memory or HBM (pages.go, request.go) and uploads what the step needs to
// know (staging.go). For each layer Score (selection.go) brings the rows together (rows.go), computes Q, K and V, rates the blocks and says
// which it chose, which counts with Config.Selects; the server writes lists of blocks and slots where Room tells it to; Move (transfer.go) names the
// misses; Compute (layer.go) uploads all of that at once, loads the misses, writes K and V to their blocks, saves those that became full (save.go),
// attends and runs the MLP. Finish picks the tokens and waits; clock.go splits the time.
//
// What is put on streams goes through a queue (queue.go, calls.go), whose thread makes the driver's calls while the server keeps its books.
//
// It runs on a Machine (machine.go): a GPU, or Go on the host for tiny models, where every access to memory is checked.
//
// With system.lookup = "gpu" the GPU finds the slots of what the server lists (lookup.go), and Move names changes to its tables in place of loads.
//
// Where attention is progressive (PSA), progressive.go and rounds.go stand in for loads and decode attention of Compute: both go round by round.
//
// Beside the device: Forced has a model tell the time while the device does the work, Shadow writes down what each step asked so that a model can
// price the same batches (forced.go), and Pinned keeps pinned memory from one device to the next (pinned.go).
//
// What differs from a serving system on a full card: metadata, prefill buffers and activations lie outside the slots that the server counts
// them in, so the card needs that much more memory; and a request's tokens are made up from its number, since workloads have lengths only.
package live
