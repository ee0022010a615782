// Command sparseserve predicts how a long-context LLM server with dynamic
// sparse attention behaves. The command line is in internal/cli.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"sparseserve/experiments"
	"sparseserve/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second interrupt ends the process at once
	app := cli.App{
		Stdout: os.Stdout, Stderr: os.Stderr, Run: experiments.NewSimulator().Run,
		Program: program(sources), LiveProgram: program(sources) + "-" + program(liveSources),
	}
	os.Exit(app.Main(ctx, os.Args[1:]))
}
