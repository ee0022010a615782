// Command sparseserve predicts how a long-context LLM server with dynamic
// sparse attention behaves. The command line is in internal/cli.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/cli"
)

// patience is how long an interrupted command may take to end without a word.
const patience = 3 * time.Second

func main() {
	collectLater()
	ctx, caught := untilSignal()
	app := cli.App{
		Stdout: os.Stdout, Stderr: os.Stderr, Run: run.NewSimulator().Run,
		Version: run.ModelVersion, LiveVersion: run.LiveVersion,
	}
	status := app.Main(ctx, os.Args[1:])
	if status == cli.Interrupted {
		status = 128 + int(caught())
	}
	os.Exit(status)
}

// collectLater has garbage first collected at a heap of 16 MiB, which short runs do not reach; from
// then on it is collected as usual.
func collectLater() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(400) // of the least heap, 4 MiB
	runtime.AddCleanup(new([16]byte), func(usual int) { debug.SetGCPercent(usual) }, 100)
}

// untilSignal returns a context that ends with the first signal to end, and which that was. A
// second signal ends the process at once.
func untilSignal() (context.Context, func() syscall.Signal) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		signal.Notify(signals, syscall.SIGHUP)
	}
	ctx, cancel := context.WithCancel(context.Background())
	caught := make(chan syscall.Signal, 1)
	go func() {
		s := <-signals
		signal.Reset()
		caught <- s.(syscall.Signal)
		cancel()
		time.AfterFunc(patience, func() {
			fmt.Fprintln(os.Stderr, "sparseserve: still ending what was interrupted; interrupt again to "+
				"end at once")
		})
	}()
	return ctx, func() syscall.Signal { return <-caught }
}
