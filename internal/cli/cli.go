package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/traces"
)

// App holds the dependencies of the commands.
type App struct {
	Stdout, Stderr io.Writer
	// Run carries out one point of an experiment.
	Run run.Runner
	// Version is the version of the model. Stored results of other versions are not used.
	Version string
	// LiveVersion is the version of live runs.
	LiveVersion string
}

// commands is the grammar of the command line.
type commands struct {
	Simulate  simulateCmd  `cmd:"" help:"Simulate serving systems on a trace of requests and compare them: one run, or every combination of lists and axes."`
	Goodput   goodputCmd   `cmd:"" help:"Find the largest request rate that each system sustains within its service level."`
	Plan      planCmd      `cmd:"" help:"Find what to buy for a load and a service level, at list prices."`
	Whatif    whatifCmd    `cmd:"" name:"whatif" help:"Find what hardware and policy do to goodput or another metric, and where an answer changes."`
	Compare   compareCmd   `cmd:"" help:"Compare a real server's log with its simulation, or two result folders."`
	Report    reportCmd    `cmd:"" help:"Show a result folder: one HTML file to send on, text, tables or pictures."`
	Trace     traceCmd     `cmd:"" help:"Look at trace files."`
	List      listCmd      `cmd:"" help:"List what is built in, and keys."`
	Paper     paperCmd     `cmd:"" help:"Reproduce the papers: experiments, claims and figures."`
	Calibrate calibrateCmd `cmd:"" help:"Measure this machine, and write what simulations cost on it."`
	Validate  validateCmd  `cmd:"" help:"Compare runs on this machine's GPU with their simulation."`
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

// errInterrupted marks a run that was interrupted and whose results so far were reported.
var errInterrupted = errors.New("interrupted")

// Main runs one command line and returns the exit status. It prints an error as one line to Stderr.
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

// parser parses command lines, and calls exit after it has printed help.
func (a *App) parser(ctx context.Context, exit func(int)) *kong.Kong {
	parser := kong.Must(&commands{}, kong.Name("sparseserve"), kong.Description(description),
		kong.Writers(a.Stdout, a.Stderr), kong.Exit(exit), kong.WithHyphenPrefixedParameters(true),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true,
			WrapUpperBound: terminalColumns(a.Stdout)}),
		kong.Vars{"paperFolder": paperFolder, "splitEvery": strconv.Itoa(splitEvery),
			"traceFormats": strings.Join(traces.FormatNames(), ", "),
			"thresholds":   strings.Join(namesOf["thresholds"](""), ", ")},
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(a))
	for _, command := range parser.Model.Leaves(false) {
		command.Detail = strings.TrimSpace(command.Detail + "\n" + details(command.Path()))
	}
	return parser
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
	parsed, err := parser.Parse(args)
	if exited { // help is printed
		return exitOK
	}
	if err != nil {
		return a.fail(misused(err))
	}
	err = parsed.Run()
	if ctx.Err() != nil && (err == nil || stopped(ctx, err)) {
		err = errInterrupted // of a command that has nothing to add
	}
	return a.fail(unwritten(err, parsed.Flags()))
}

// fail reports an error, if there is one, and returns the exit status.
func (a *App) fail(err error) int {
	if err == nil {
		return exitOK
	}
	text := err.Error()
	if system := new(os.PathError); errors.As(err, &system) { // the file, not the system call's name
		text = strings.Replace(text, system.Op+" "+system.Path, system.Path, 1)
	}
	fmt.Fprintf(a.Stderr, "sparseserve: %s\n", oneLine(text))
	if errors.Is(err, errInterrupted) {
		return Interrupted
	}
	return exitFailed
}

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool { return terminal(w) != nil }

// commit is set by the linker (Makefile, Dockerfile) for builds in which Go records no commit.
var commit string

type versionCmd struct{}

// Run prints one line: the module's version, its commit and date if known, and the Go version.
func (versionCmd) Run(a *App) error {
	info, known := debug.ReadBuildInfo()
	_, err := fmt.Fprintln(a.Stdout, versionLine(info, known, commit))
	return err
}

func versionLine(info *debug.BuildInfo, known bool, linked string) string {
	if !known {
		return "sparseserve, built without module information"
	}
	setting := map[string]string{}
	for _, s := range info.Settings {
		setting[s.Key] = s.Value
	}
	line := "sparseserve " + info.Main.Version
	if commit := setting["vcs.revision"]; commit != "" {
		line += ", commit " + commit[:min(12, len(commit))]
		if setting["vcs.modified"] == "true" {
			line += " with changes"
		}
		line += " of " + setting["vcs.time"]
	} else if linked != "" {
		line += ", commit " + linked
	} else {
		line += ", commit unknown"
	}
	return line + ", " + info.GoVersion
}

// commandsNow has the commands that do what these once did.
var commandsNow = map[string]string{"claims": "paper claims", "diff": "compare",
	"figures": "report", "sweep": "simulate"}

// misused adds to a parser error where to find help. For an unknown flag that is a configuration
// key it adds how to set the key, and for an old command it names the new one.
func misused(err error) error {
	command := "sparseserve"
	var parse *kong.ParseError
	if errors.As(err, &parse) && parse.Context.Selected() != nil {
		command = parse.Context.Selected().FullPath()
	}
	old := strings.TrimPrefix(err.Error(), "unexpected argument ")
	if now := commandsNow[old]; now != "" && command == "sparseserve" {
		return fmt.Errorf("%s is %s now; see %s %[2]s --help", old, now, command)
	}
	name, unknown := strings.CutPrefix(err.Error(), "unknown flag --")
	name, _, _ = strings.Cut(name, ",")
	if key, notKey := config.SettableKey(name); unknown && notKey == nil {
		return fmt.Errorf("unknown flag --%s, which is a key of the configuration: --set %s=VALUE", name,
			key)
	}
	return fmt.Errorf("%w; see %s --help", err, command)
}

// unwritten names the flag whose folder or file cannot be created, because the system's error often
// names a parent folder or a temporary file.
func unwritten(err error, flags []*kong.Flag) error {
	var at *fs.PathError
	if !errors.As(err, &at) || run.IsFull(err) || at.Op != "mkdir" &&
		!errors.Is(at.Err, syscall.ENOTDIR) &&
		!strings.HasPrefix(filepath.Base(at.Path), ".") { // a lock, or a file that is renamed
		return err
	}
	for _, f := range flags {
		path, _ := f.Target.Interface().(string)
		if (f.Name == "out" || f.Name == "points") && path != "" && (within(path, at.Path) != at.Path ||
			within(at.Path, path) != path || filepath.Dir(path) == filepath.Dir(at.Path)) {
			return fmt.Errorf("--%s %s: cannot be written: %w; give another", f.Name, path, at.Err)
		}
	}
	return err
}
