// Package validate compares the simulation with measurements on real machines.
//
// # Live runs
//
// A Validation (validation.go) runs the points of a sweep live, one at a time, and simulates the
// same points with every head. It reports two errors. The first is the error of user-visible
// figures: TTFT, TBT, throughput, scheduling delay, blocks loaded (comparison.go). The second is
// the error of the modelled time of each step and phase, on exactly the batches of the live run
// (steps.go). The first includes the queue, which near saturation multiplies an error of a step;
// the second is the error of the cost model alone.
//
// For the second, a live run records the calls of each step to its device (device_trace.go), and
// the model prices them afterwards, so that a new calibration is compared with the same live runs
// without a GPU. Ablate (ablate.go) prices them without each part of the model in turn. Live runs
// are stored under their names, compressed (store.go). Recompute (report.go) makes the table from
// the files. No parameter is fitted to these runs.
//
// A run is at saturation if its live queue keeps growing, its live mean scheduling delay exceeds
// slo.delay_s, or more than half of its requests are unfinished when the last one arrives
// (requests.go). The goals apply to the other runs.
//
// # The log of a real server
//
// A Replay (replay.go) simulates the requests of a recorded log, which package records reads, under
// the configuration of one server. It compares them request by request, for the whole log and for
// each stage of its load (replay_stages.go), in the figures that benchmark clients report
// (replay_metrics.go). replay_prefix.go infers whether prompts hit a prefix cache. replay_files.go
// stores both sides.
package validate
