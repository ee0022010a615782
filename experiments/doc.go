// Package experiments holds the built-in experiments as data: TOML files by name. What reads and
// runs them are the packages below it, which import one another in this order:
//
//	config     a file, presets and --set flags become configurations of runs
//	run        a configuration becomes a run, a run becomes a result folder
//	capacity   the largest rate that a server sustains (goodput and plan)
//	validate   simulations against live runs, and against the log of a real server
//	papers     the papers' figures, studies and claims
//
// validate and papers do not know each other. testkit is for tests alone, and validation holds
// the live runs that the model is validated against.
package experiments
