// Package experiments turns a configuration into runs and runs into a result
// folder.
//
// Load (load.go) puts documents one over the other: the built-in default
// experiment, a file, --set flags (document.go, decode.go). Over a trace or model
// of one's own the default's fitted values are neutral (neutral.go). Systems are put
// together from presets (systems.go, presets.go) and the whole is checked
// (finish.go, check.go). Config.Points (point.go) expands it by system, rate
// and seed. A Grid (grid.go) runs the points on all cores with a Runner, which
// is a Simulator's Run (run.go), and a Store (store.go) keeps the files.
//
// # Sweeps
//
// A sweep file is a configuration with axes. LoadSweep (sweep_load.go, axes.go)
// makes one Config of each combination of the axes' values:
//
//	base = "default"            # a built-in experiment, or a path from this file's folder
//	seeds = [1, 2, 3]           # the same arrivals for every system
//
//	[workload]                  # any key of a configuration
//	requests = 300
//
//	[[axis]]                    # axes multiply, the first slowest
//	grid.system.budget_tokens = [1024, 2048]   # grid: the product of its keys
//	grid.workload.rate = [0.05, 0.1, 0.2]
//
//	[[axis]]                    # zip: lists in step
//	zip.model = ["lwm-7b", "llama3-8b"]
//	zip.workload.output_scale = [2.0, 8.0]
//
//	[[axis]]                    # list: points written out
//	list = [
//	  { system.preset = "vllm" },
//	  { system.preset = "sparseserve", system.window = 4 },
//	]
//
//	[goodput]                   # the search of the command plan
//	start = 0.05                # first rate; default: the lowest of the configuration
//	width = 0.02                # of the last bracket, relative
//
// An axis sets a key the way --set does, over the file's own tables. Lists of
// systems, rates and seeds expand as they do without axes, so that a plain
// configuration is a sweep too. --set reaches every key that no axis sets.
//
// A PointStore (sweep_store.go) keeps each run in a folder named by the hash
// (sweep_hash.go) of its resolved configuration and of the model, profile and
// trace that this names. PointStore.Do (sweep_run.go) runs what is not kept; a
// SweepFolder (sweep_folder.go) adds the index that says which run is which
// point, and tables of them all. A store belongs to one version of the program:
// main names it by a digest of the sources and data that runs are made from,
// and a store of another is refused.
//
// The points of a sweep, whatever their rate and seed, are also the candidates
// (goodput_candidates.go) of a plan (goodput_plan.go): a search (goodput_search.go) looks for the
// largest rate that each sustains within its service level (slo.go), and its
// trail is kept (goodput_trail.go).
//
// # The paper's figures and claims
//
// A Lab (lab.go) runs the experiments behind the figures of the SparseServe
// paper (paper.go, fig*.toml): the sweeps and plans above, over one store, and
// transfers (lab_transfer.go) and selections (lab_overlap.go) by themselves.
// What PSA's Figs. 2 and 5 ask (lab_psa_fig2.go, lab_psa_fig5.go) is read off a
// sample of heads (attention.go) at every size of a selection (selectors.go), by
// an accuracy proxy (accuracy.go). Each folder of results says which program made
// them (lab_version.go).
// Judge (claims.go) reads its results and measures what claims.toml says
// (claims_measure.go); claims_notes.toml says why numbers differ. freed.toml
// lists the parameters that no paper gives; a Lab can run with one of them
// changed (freed.go). A run's steps become a trace for Perfetto in perfetto.go.
//
// # Validation
//
// A Validation (validate.go) runs the points of a sweep live (live.go), one
// after the other, and simulates the same points with every head. It answers two
// questions apart. How far are the figures that users see: TTFT, TBT,
// throughput, scheduling delay, blocks loaded (validate_compare.go)? And, of the
// very batches that the live run carried out, how far is the modelled time of
// each step, and of each phase (validate_steps.go)? The first has the queue in
// it, which near saturation turns one per cent of a step into many of a TTFT; the
// second has only the cost model.
//
// For the second a live run keeps what each step asked of its device
// (validate_calls.go), and the model prices that afterwards. So a new calibration
// is held against the same live runs without a GPU. Both sides of every run are
// kept, compressed (validate_store.go), and Recompute (validate_report.go) makes
// the table from the files alone. No parameter is fitted to these runs. What
// disturbed a run shows in its own steps (validate_steady.go); it may be made once
// more (validate_again.go).
//
// A run is at saturation when its live queue keeps growing, its live mean
// scheduling delay is beyond slo.delay_s, or more than half of its requests are
// unfinished as the last one arrives; the goals are for the others.
// validate-h200.toml is the validation on an H200, validate-tiny.toml one that
// takes seconds on any machine.
//
// # A real server's record
//
// A Replay (compare.go) simulates the requests of a record of a real server, which
// package traces reads, under the configuration of one server (compare_config.go).
// It compares them request by request, for the whole record and for each stage of
// its load (compare_stages.go), in the figures that benchmark clients report
// (compare_metrics.go); compare_store.go keeps both sides.
//
// The TOML files of this folder are data: presets.toml the serving systems,
// the others the built-in experiments.
package experiments
