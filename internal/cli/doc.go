// Package cli is the command line: one short file a command. Main (cli.go)
// parses it, calls one command and returns the exit status.
//
// simulate.go follows a run: configuration, grid, files, then what a person
// reads of it in report.go, table.go (rows.go) and warnings.go. progress.go draws on
// terminals only. sweep.go and plan.go keep their runs for ever.
// compare.go holds a real server's record against its simulation.
package cli
