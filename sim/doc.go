// Package sim is the serving system: requests of a workload pass scheduler, selection and KV
// cache, and a Device carries out each step.
//
// Follow one request: Server.Run (run.go) advances virtual time; arrive.go queues it; sched
// forms a batch; startStep (step.go) brings its requests into the cache (prepare.go) and takes
// them through the layers (layer.go): select.go finds what each head attends to (external.go: a
// device or a recording does), kv finds what must move, and a path (path.go) leads to the Device
// (device.go), with counts alone or, for a device that computes, with addresses (addressed.go,
// lists.go, listing.go). Full blocks go to DRAM (saves.go). commit.go emits the tokens; the
// Recorder (request.go) sees every finished request and step; metrics.go sums them up.
//
// A Fleet (fleet.go) runs several servers in one virtual time behind a Router (router.go), which
// reads their load (load.go); failure.go takes replicas away and brings them back.
//
// The package reads no wall clock, file, flag or environment and starts no thread. It is one
// code for modelled and real devices.
package sim
