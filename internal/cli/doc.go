// Package cli is the command line: one short file a command. kong reads it from the tags of the
// commands' structs (cli.go); misuse.go has what is wrong with a command line, and old names.
//
// simulate.go follows a run: configuration, grid, files, then what a person reads of it (print.go,
// answer.go). search.go is what goodput and plan have in common. progress.go draws on terminals
// only. compare.go holds a real server's log against its simulation. completion.go answers shells.
package cli
