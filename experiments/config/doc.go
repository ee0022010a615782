// Package config decodes experiments: the list of runs and the configuration of each.
//
// Load (load.go) merges documents (document.go), lists of settings (setting.go), in layers: the
// built-in default experiment, a file, --set flags. With the user's own trace or model, the
// default's fitted values become neutral (neutral.go). Systems are resolved from presets
// (systems.go, presets.go), and the whole configuration is checked and expanded by system and by
// the values of listed keys, such as rates and seeds (resolve.go, check.go). Errors are KeyErrors
// with the place of the key and the nearest known key (package nearest). Each run is a Point
// (point.go). machine.go finds the card, kernels and engine of a point, identity.go defines which
// points are equal.
//
// # Sweeps
//
// A sweep file is a configuration with axes. LoadSweep (sweep_load.go, axes.go) reads the
// runs of each combination of the axes' values:
//
//	base = "default"            # a built-in experiment, or a path from this file's folder
//	seed = [1, 2, 3]            # the same arrivals for every system
//
//	[workload]                  # any key of a configuration
//	requests = 300
//
//	[[axis]]                    # axes multiply, the first slowest
//	grid.selection.budget_tokens = [1024, 2048]   # grid: the product of its keys
//	grid.workload.rate = [0.05, 0.1, 0.2]
//
//	[[axis]]                    # zip: lists in step
//	zip.model = ["lwm-7b", "llama3-8b"]
//	zip.workload.output_scale = [2.0, 8.0]
//
//	[[axis]]                    # list: points written out
//	list = [
//	  { system.preset = "vllm" },
//	  { system.preset = "sparseserve", offload.working_set_steps = 4 },
//	]
//
//	[goodput]                   # the search of goodput
//	start = 0.05                # first rate; default: the lowest of the configuration
//	width = 0.02                # of the last bracket, relative
//
//	[plan]                      # the purchase search of plan
//	prices = "mid"              # list prices
//
// An axis sets a key as --set does, over the file's own tables. Lists of systems, rates and seeds
// expand as they do without axes, so a plain configuration is a sweep too. --set reaches every key
// that no axis sets.
package config
