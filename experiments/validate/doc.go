// Package validate compares the simulation with what machines did.
//
// # Live runs
//
// A Validation (validation.go) runs the points of a sweep live, one after the other, and simulates
// the same points with every head. It answers two questions. How far off are the figures that
// users see: TTFT, TBT, throughput, scheduling delay, blocks loaded (comparison.go)? And, of the
// very batches that the live run carried out, how far off is the modelled time of each step and
// of each phase (steps.go)? The first includes the queue, which near saturation multiplies an
// error of a step; the second is the cost model's alone.
//
// For the second, a live run keeps what each step asked of its device (device_trace.go), and the
// model prices that afterwards, so that a new calibration is compared with the same live runs
// without a GPU. Ablate (ablate.go) prices them without each part of the model in turn. Live runs
// are kept under their names, compressed (store.go); Recompute (report.go) makes the table from
// the files. No parameter is fitted to these runs. A run that the machine disturbed shows it in
// its own steps (disturbance.go) and may be made once more (rerun.go).
//
// A run is at saturation when its live queue keeps growing, its live mean scheduling delay is
// beyond slo.delay_s, or more than half of its requests are unfinished as the last one arrives
// (requests.go); the goals are for the others.
//
// # The log of a real server
//
// A Replay (replay.go) simulates the requests of a recorded log, which package records reads,
// under the configuration of one server. It compares them request by request, for the whole log
// and for each stage of its load (replay_stages.go), in the figures that benchmark clients report
// (replay_metrics.go); replay_prefix.go infers whether prompts came from a prefix cache, and
// replay_files.go keeps both sides.
package validate
