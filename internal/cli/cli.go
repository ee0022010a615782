package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/traces"
)

// App is what the commands need of the world.
type App struct {
	Stdout, Stderr io.Writer
	// Run carries out one point of an experiment.
	Run run.Runner
	// Version names the version of the model. Kept results of another one are not used.
	Version string
	// LiveVersion names the version of what makes live runs.
	LiveVersion string
}

// commands is the grammar of the command line.
type commands struct {
	Simulate  simulateCmd  `cmd:"" help:"Simulate serving systems on a trace of requests and compare them."`
	Sweep     sweepCmd     `cmd:"" help:"Run an experiment over axes; a finished run is never made again."`
	Point     pointCmd     `cmd:"" hidden:"" help:"Run one task of a job that sweep has written."`
	PlanTask  planTaskCmd  `cmd:"" hidden:"" name:"plan-task" help:"Run one task of a job that plan has written."`
	Plan      planCmd      `cmd:"" help:"Find the largest request rate that each system sustains within its service level."`
	Whatif    whatifCmd    `cmd:"" name:"whatif" help:"Find what hardware and policy do to goodput or another metric, and where an answer changes."`
	Figures   figuresCmd   `cmd:"" help:"Draw the figures of result folders anew, or those of the papers."`
	Report    reportCmd    `cmd:"" help:"Make one HTML file of a result folder, to read anywhere and to send on."`
	Claims    claimsCmd    `cmd:"" help:"Compare what the papers claim with what the simulator finds."`
	Diff      diffCmd      `cmd:"" help:"Compare two result folders: what was set differently, and what came of it beyond chance."`
	Compare   compareCmd   `cmd:"" help:"Hold a recorded run of a real server against the simulation of its requests."`
	Validate  validateCmd  `cmd:"" help:"Run an experiment on this machine's GPU and simulated, and say how well the simulation predicted it."`
	Calibrate calibrateCmd `cmd:"" help:"Measure this machine's GPU and write a hardware profile."`
	Patterns  patternsCmd  `cmd:"" help:"Look at patterns of sparse prefill, and search them."`
	Trace     traceCmd     `cmd:"" help:"Look at trace files."`
	List      listCmd      `cmd:"" help:"List what is built in."`
	Version   versionCmd   `cmd:"" help:"Print the version and the commit that it was built from; --version in short."`

	Completion completionCmd `cmd:"" help:"Print what a shell needs to complete commands, flags and their values."`
}

const description = "Predicts how a long-context LLM server with dynamic sparse attention " +
	"behaves: TTFT, TBT, throughput, goodput, cache misses, link traffic.\n\n" +
	"Exit status: 0 when all was done, 1 after an error or when no request was served, 130 when " +
	"interrupted."

// Exit statuses.
const (
	exitOK     = 0
	exitFailed = 1
	// Interrupted is 128 and SIGINT, as shells report an interrupt.
	Interrupted = 130
)

// errInterrupted says that a run was interrupted after its results so far were
// reported.
var errInterrupted = errors.New("interrupted")

// interrupted is the error of what keeps nothing when it is interrupted.
func interrupted(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return errInterrupted
	}
	return err
}

// Main carries out one command line and returns the exit status. An error is
// one line on Stderr.
func (a *App) Main(ctx context.Context, args []string) int {
	out := &plainWriter{w: a.Stdout}
	app := *a
	app.Stdout, app.Stderr = out, &plainWriter{w: a.Stderr}
	status := app.run(ctx, args)
	if out.err != nil && status == exitOK {
		return app.fail(fmt.Errorf("standard output: %w", out.err))
	}
	return status
}

// parser reads command lines, and calls exit when it has printed help.
func (a *App) parser(ctx context.Context, exit func(int)) *kong.Kong {
	return kong.Must(&commands{}, kong.Name("sparseserve"), kong.Description(description),
		kong.Writers(a.Stdout, a.Stderr), kong.Exit(exit), kong.WithHyphenPrefixedParameters(true),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: terminalColumns(a.Stdout)}),
		kong.Vars{"paperFolder": paperFolder, "calibration": defaultCalibration,
			"splitEvery": strconv.Itoa(splitEvery), "traceFormats": oneOf(traces.FormatNames()),
			"thresholds": thresholdNames()},
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(a))
}

func (a *App) run(ctx context.Context, args []string) int {
	exited := false
	parser := a.parser(ctx, func(int) { exited = true })
	switch {
	case len(args) > 1 && args[0] == completeWords:
		_, err := fmt.Fprint(a.Stdout, strings.Join(candidates(parser.Model, args[1:]), "\n")+"\n")
		return a.fail(err)
	case slices.Contains(args, ""):
		return a.fail(errors.New("an argument is empty; leave it out, or see sparseserve --help"))
	case len(args) == 0:
		args = []string{"--help"}
	case args[0] == "--version":
		args = append([]string{"version"}, args[1:]...)
	case args[0] == "help":
		args = append(slices.Clone(args[1:]), "--help")
	}
	if err := renamed(args); err != nil {
		return a.fail(err)
	}
	parsed, err := parser.Parse(args)
	if exited { // help is printed
		return exitOK
	}
	if err != nil {
		return a.fail(misused(err))
	}
	err = parsed.Run()
	if cause := ctx.Err(); cause != nil && errors.Is(err, cause) {
		err = errInterrupted // of a command that has nothing to add
	}
	return a.fail(unwritten(err, parsed.Flags()))
}

// fail reports an error, if there is one, and returns the exit status.
func (a *App) fail(err error) int {
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(a.Stderr, "sparseserve: %s\n", oneLine(err.Error()))
	if errors.Is(err, errInterrupted) {
		return Interrupted
	}
	return exitFailed
}

// isTerminal says whether a person watches w.
func isTerminal(w io.Writer) bool {
	return terminal(w) != nil
}
