// Package experiments turns a configuration into runs and runs into a result
// folder.
//
// Load (load.go) puts documents one over the other: the built-in default
// experiment, a file, --set flags (document.go, decode.go). Systems are put
// together from presets (systems.go, presets.go) and the whole is checked
// (finish.go, check.go). Config.Points (point.go) expands it by system, rate
// and seed. A Grid (grid.go) runs the points on all cores with a Runner, which
// is a Simulator's Run (run.go), and a Store (store.go) keeps the files.
//
// The TOML files of this folder are data: presets.toml the serving systems,
// the others the built-in experiments.
package experiments
