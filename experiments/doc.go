// Package experiments contains the built-in experiments as data: TOML files by name. The packages
// below read and run them. They import one another in this order:
//
//	config     a file, presets and --set flags become configurations of runs
//	run        a configuration becomes a run, a run becomes a result folder
//	capacity   the largest rate that a server sustains (goodput and plan)
//	validate   simulations against live runs, and against the log of a real server
//	papers     the papers' figures, studies and claims
//
// validate and papers are independent. testkit is for tests only. Folder validation holds the live
// runs that validate the model.
package experiments
