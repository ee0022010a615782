// Package sim is the serving system: it takes requests from a workload, runs them through
// scheduler, selection and KV cache, and has a Device carry out each step.
//
// Follow one request: Server.Run (server.go) turns the clock, and takes it from the Workload
// and queues it (arrive.go); sched forms a batch; startStep (step.go) walks the batch through
// the layers, where select.go finds what each head attends to (choose.go where a device or a
// recording tells), kv finds what must move and the Device (device.go) moves, computes and
// tells the time; full blocks go to DRAM (saves.go); when the step ends, commit.go hands out
// tokens; the Recorder (request.go) sees every finished request and step; metrics.go sums them
// up.
//
// The package reads no wall clock, file, flag or environment. It is one code for modelled and
// real devices.
package sim
