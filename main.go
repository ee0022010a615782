// Command sparseserve predicts how a long-context LLM server with dynamic
// sparse attention behaves. The command line is in internal/cli.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/cli"
)

// patience is how long an interrupted command may take to end without a word.
const patience = 3 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() {
		stop() // a second interrupt ends the process at once
		time.AfterFunc(patience, func() {
			fmt.Fprintln(os.Stderr, "sparseserve: still ending what was interrupted; interrupt again to end at once")
		})
	})
	version := sync.OnceValue(func() string { return program(sources) })
	app := cli.App{
		Stdout: os.Stdout, Stderr: os.Stderr, Run: run.NewSimulator().Run,
		Program: version, LiveProgram: func() string { return version() + "-" + program(liveSources) },
	}
	os.Exit(app.Main(ctx, os.Args[1:]))
}
