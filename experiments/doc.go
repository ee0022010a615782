// Package experiments turns a configuration into runs and runs into a result
// folder.
//
// A configuration's way: Load (load.go) puts the built-in default experiment,
// a file and --set flags over one another (document.go, decode.go, set apart
// from how systems are put together from presets, systems.go), checks the whole
// (finish.go, check.go) and yields a Config. Config.Points (point.go) expands
// it by system, rate and seed. A Grid (grid.go) runs the points with a Runner
// (run.go) on all cores, and a Store (store.go) keeps the files.
//
// The TOML files of this folder are data: presets.toml the serving systems,
// the others the built-in experiments.
package experiments
