package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/figures"
	"github.com/sparseserve/sparseserve/sim"
)

type simulateCmd struct {
	Config  string   `arg:"" optional:"" name:"CONFIG" help:"TOML file, or the name of a built-in experiment. Without it: default."`
	Set     []string `placeholder:"KEY=VALUE" sep:"none" help:"Set a key of the configuration, as in workload.rate=0.2 or workload.rate=[0.1,0.2]. May be repeated."`
	Out     string   `placeholder:"DIR" help:"Result folder. Default: out/ and the name of the configuration."`
	JSON    bool     `name:"json" help:"Print one JSON array, an object a run, and nothing else."`
	Workers int      `placeholder:"N" help:"Runs at a time. Default: one a core."`
	liveFlags
	Trace      bool   `help:"Write the steps of every run as a trace for Perfetto or chrome://tracing; --set output.trace=true in short."`
	CPUProfile string `name:"cpuprofile" hidden:"" placeholder:"FILE"`
}

func (s *simulateCmd) Run(ctx context.Context, app *App) (err error) {
	if s.Workers < 0 {
		return fmt.Errorf("--workers %d: must be at least 1", s.Workers)
	}
	sets := s.Set
	if s.Trace {
		sets = append(slices.Clone(sets), "output.trace=true")
	}
	cfg, err := config.Load(s.Config, sets)
	if err != nil {
		return err
	}
	points := cfg.Points()
	simulate, most, err := s.runner(app, len(points))
	if err != nil {
		return err
	}
	workers := s.Workers
	if most > 0 {
		workers = most
	}
	out := s.Out
	if out == "" {
		out = filepath.Join("out", cfg.Name)
	}
	stop, err := startProfile(s.CPUProfile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()

	store, err := run.NewStore(out, cfg)
	if err != nil {
		return err
	}
	if !s.JSON {
		introduce(app.Stdout, cfg, s.Config == "", len(points))
	}
	bar := newProgress(app.Stderr, "requests")
	bar.planned(requestsOf(points))
	grid := run.Grid{Run: simulate, Store: store, Workers: workers, Partial: true, Finished: bar.finished}
	results, runErr := grid.Do(ctx, points)
	bar.close()
	if cause := ctx.Err(); cause != nil && errors.Is(runErr, cause) {
		runErr = errInterrupted
	}
	if len(results) == 0 {
		if err := store.Abandon(); err != nil {
			return err
		}
		return runErr
	}

	files, err := store.Finish(results)
	if err != nil {
		return err
	}
	if err := s.report(app, cfg, out, files, run.Summaries(results)); err != nil {
		return err
	}
	if runErr != nil {
		return fmt.Errorf("%w; %s and are kept in %s", runErr, finishedOf(results, len(points)), out)
	}
	return nil
}

// finishedOf says how many runs finished, whole or in part.
func finishedOf(results []run.Result, of int) string {
	part := 0
	for i := range results {
		if results[i].Summary.Interrupted != "" {
			part++
		}
	}
	text := fmt.Sprintf("%d of %d runs finished", len(results)-part, of)
	if part > 0 {
		text += fmt.Sprintf(", %d in part,", part)
	}
	return text
}

// report draws the figures and says what came out.
func (s *simulateCmd) report(app *App, cfg *config.Config, out string, files []string, sums []sim.Summary) error {
	pictures, err := drawAgainstRate(out, cfg)
	if err != nil {
		return err
	}
	if s.JSON {
		return printJSON(app, sums)
	}
	printTable(app.Stdout, sums)
	printLive(app.Stdout, sums)
	printWarnings(app.Stdout, sums)
	printFiles(app.Stdout, append(files, pictures...), filepath.Join(out, "points"))
	return nil
}

// drawAgainstRate draws the figures of a result folder. A trace with times of
// its own has no rate to draw against.
func drawAgainstRate(out string, cfg *config.Config) ([]string, error) {
	if cfg.ReplaysTimes() {
		return nil, nil
	}
	runs, err := figures.Read(out)
	if err != nil {
		return nil, err
	}
	return figures.Draw(out, runs)
}

// printJSON prints an array, or an object, and nothing else.
func printJSON(app *App, v any) error {
	e := json.NewEncoder(app.Stdout)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// startProfile writes a CPU profile until the returned function is called.
func startProfile(path string) (stop func() error, err error) {
	if path == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}
