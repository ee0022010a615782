package cli

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strings"
)

// configArg is the configuration that a command starts from.
type configArg struct {
	Config string `arg:"" optional:"" name:"FILE" complete:"experiments" help:"TOML file of a configuration, or the name of a built-in experiment (list experiments). Without it: default."`
}

// settings change a configuration.
type settings struct {
	Set []string `placeholder:"KEY=VALUE" complete:"settings" sep:"none" help:"Set a key of the configuration, as in workload.rate=0.2 or system.preset=vllm,sparseserve. May be repeated."`
}

// resultFlags set the destination of a command's answer.
type resultFlags struct {
	Out   string `placeholder:"DIR" help:"Folder for the results. The command continues a folder that answers the same question, and refuses one with other results. Default: below out/, named after the configuration and its settings, with a number if taken."`
	Force bool   `help:"Replace other results in the folder."`
	JSON  bool   `name:"json" help:"Print JSON and nothing else."`
}

// storeFlags set where and how runs are made.
type storeFlags struct {
	Points  string `placeholder:"DIR" help:"Where every run is kept under the hash of its configuration; commands may share it. Default: runs/ in the result folder."`
	Workers uint   `placeholder:"N" help:"Runs at a time. Default, and 0: one a core."`
}

// stopped reports whether an interrupt caused an error.
func stopped(ctx context.Context, err error) bool {
	cause := ctx.Err()
	return cause != nil && errors.Is(err, cause)
}

// goesOn returns the error of an interrupted command that keeps its runs.
func goesOn(ctx context.Context, err error) error {
	if stopped(ctx, err) {
		return fmt.Errorf("%w; finished runs are kept: the same command goes on", errInterrupted)
	}
	return err
}

// helpTexts are the details of commands, and whole small files that they read.
//
//go:embed help/*
var helpTexts embed.FS

// details returns the details of a command's help. Indented lines stay as they are.
func details(command string) string {
	name := "help/" + strings.ReplaceAll(command, " ", "-")
	text, _ := helpTexts.ReadFile(name + ".txt") // a command may have none
	file, err := helpTexts.ReadFile(name + ".toml")
	if err != nil {
		return string(text)
	}
	return string(text) + "\nA whole small file (sparseserve list keys has all keys):\n\n  " +
		strings.ReplaceAll(strings.TrimSpace(string(file)), "\n", "\n  ")
}
