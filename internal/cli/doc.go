// Package cli is the command line, with a short file for each command, or for a few that share
// their flags. kong builds it from the tags of the commands' structs (cli.go). misuse.go explains
// errors of a command line and knows old names.
//
// simulate.go follows a run: configuration, grid, files, then the printed answer (print.go,
// answer.go). search.go has goodput and plan. progress.go draws on terminals only. compare.go
// compares a real server's log with its simulation. completion.go serves shells.
package cli
