// Package sim is the serving system: requests of a workload pass through scheduler, selection and
// KV cache, and a Device runs each step.
//
// A request takes this path. Shared.Run (run.go) advances virtual time. arrive.go queues the
// request. sched forms a batch. startStep (step.go) brings the batch's requests into the cache
// (prepare.go) and runs them through the layers (layer.go): select.go finds the blocks that each
// head attends to (external.go: from a device or a recording), kv finds the blocks to move
// (path.go), and the Device (device.go) moves and computes. It gets counts or, if it computes for
// real, addresses (addressed.go, lists.go). Full blocks are saved to DRAM (saves.go). commit.go
// emits the tokens. The Recorder (request.go) receives every finished request and step; package
// metrics sums them up.
//
// Servers of a fleet (package fleet) share a run; replica.go has what the fleet asks of them.
//
// The package reads no wall clock, file, flag or environment and starts no thread. Modelled and
// real devices use the same code.
package sim
