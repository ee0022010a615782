package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/capacity"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/figures"
	"github.com/sparseserve/sparseserve/internal/answers"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/sim"
)

type simulateCmd struct {
	configArg
	settings
	resultFlags
	Workers uint `placeholder:"N" help:"Runs at a time. Default, and 0: one a core."`
	liveFlags
}

// Run implements the command.
func (s *simulateCmd) Run(ctx context.Context, app *App) (err error) {
	cfg, err := config.Load(s.Config, s.Set)
	if err != nil {
		return err
	}
	head, err := headOf(ctx, app, cfg)
	if err != nil {
		return err
	}
	points := cfg.Points()
	simulate, most, err := s.runner(app, len(points))
	if err != nil {
		return err
	}
	workers := int(s.Workers)
	if most > 0 {
		workers = most
	}
	folder, err := s.open(app, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	if s.Force {
		if err := folder.Store.Forget(points); err != nil {
			return err
		}
	}
	kept := append(cfg.Paths(), s.Config, s.Weights, folder.Dir())
	if s.Record != "" {
		if err := files.CheckOutput(s.Record, kept...); err != nil {
			return fmt.Errorf("--record: %w", err)
		}
	}
	watch, end := app.watch(ctx)
	defer end()
	missing, _, err := folder.Store.Missing(points, watch)
	if err != nil {
		return err
	}
	if !s.JSON {
		printNotes(app.Stderr, cfg.Notes)
		if s.Config == "" && !cfg.Own {
			fmt.Fprintf(app.Stdout, "No FILE given: running the built-in experiment %q; --set "+
				"KEY=VALUE changes it.\n", cfg.Name)
		}
		head.print(app.Stdout, len(points))
		if before := len(points) - len(missing); before > 0 {
			fmt.Fprintf(app.Stdout, "%d of them finished before and are kept in %s; --force runs all "+
				"again.\n", before, inCell(folder.Dir()))
		}
	}
	bar := newProgress(app.Stderr, "requests")
	bar.planned(requestsOf(missing))
	grid := run.Grid{Run: simulate, Workers: workers, Partial: true, Finished: bar.finished}
	if s.Live == "" {
		grid.Again = bar.planned
	}
	results, notes, runErr := folder.Store.Do(ctx, grid, points)
	bar.close()
	printNotes(app.Stderr, notes)
	if len(results) == 0 {
		return runErr
	}
	files, err := folder.Finish(results)
	if err != nil {
		return err
	}
	if err := s.report(ctx, app, cfg, folder, files, run.Summaries(results)); err != nil {
		return err
	}
	if cause := ctx.Err(); cause != nil && (runErr == nil || errors.Is(runErr, cause)) {
		runErr = errInterrupted
	}
	if runErr == nil {
		runErr = nothingServed(run.Summaries(results))
	} else {
		return fmt.Errorf("%w; %s and are kept in %s", runErr, finishedOf(results, len(points)),
			folder.Dir())
	}
	return runErr
}

// nothingServed is the error of an experiment of which no run served a request.
func nothingServed(sums []sim.Summary) error {
	if slices.ContainsFunc(sums, func(s sim.Summary) bool { return s.Completed > 0 }) {
		return nil
	}
	return errors.New("no request was served; the warnings say why")
}

// open opens the result folder. Without --out it is the first of out/NAME, out/NAME-2, .. that is
// new or of the same configuration, and that no other process writes to.
func (s *simulateCmd) open(app *App, cfg *config.Config) (folder *run.Folder, err error) {
	version := app.Version
	if s.Live != "" { // a measurement of this machine, made with these flags
		version = fmt.Sprintf("%s %+v", app.LiveVersion, s.liveFlags)
	}
	q, err := run.AskRuns(cfg)
	if err != nil {
		return nil, err
	}
	if q.Asked = s.Set; s.Out != "" {
		return run.OpenFolder(s.Out, version, q, "", s.Force)
	}
	name := cfg.Name + settingsName(s.Set)
	if s.Config == "" && cfg.Own { // only what is set says what runs
		name = strings.TrimPrefix(settingsName(s.Set), "-")
	}
	name = filepath.Join("out", name)
	if s.Live != "" {
		name += "-live"
	}
	err = numbered(name, true, func(out string) error {
		folder, err = run.OpenFolder(out, version, q, "", s.Force)
		return err
	}, run.ErrTaken, run.ErrLocked)
	return folder, err
}

// numbered opens the folder of a name or, with more, the first of name, name-2, name-3, ..  that
// does not fail for one of the reasons.
func numbered(name string, more bool, open func(out string) error, reasons ...error) error {
	for n, out := 2, name; ; n++ {
		err := open(out)
		if !more || !slices.ContainsFunc(reasons,
			func(reason error) bool { return errors.Is(err, reason) }) {
			return err
		}
		out = fmt.Sprintf("%s-%d", name, n)
	}
}

// settingsName is what settings add to the name of a folder: -rate=0.3 for workload.rate=0.3.
func settingsName(sets []string) string {
	const most = 120 // bytes; longer ones end in a digest
	var b strings.Builder
	for _, set := range sets {
		key, value, _ := strings.Cut(set, "=")
		if strings.HasPrefix(value, string(filepath.Separator)) { // a file is known by its name
			value = filepath.Base(value)
		}
		b.WriteString("-" + config.KeyName(key) + "=" + value)
	}
	name := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9',
			strings.ContainsRune("-_=+.,", r):
			return r
		case r == '[' || r == ']' || r == '"' || r == ' ':
			return -1
		}
		return '_'
	}, b.String())
	if len(name) > most {
		name = fmt.Sprintf("%s-%08x", name[:most-9], crc32.ChecksumIEEE([]byte(name)))
	}
	return name
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

// report draws the figures, and prints what came out.
func (s *simulateCmd) report(ctx context.Context, app *App, cfg *config.Config,
	folder *run.Folder, files []string, sums []sim.Summary) error {
	out := folder.Dir()
	if s.JSON {
		return printJSON(app, sums)
	}
	runs := answers.Runs{Name: cfg.Name, Sums: sums, Systems: cfg.Systems,
		Unit: capacity.RateUnit(&cfg.Workload)}
	for i := range sums {
		runs.Folders = append(runs.Folders, folder.Place(sums[i].Name))
	}
	pictures, err := drawFigures(ctx, out, runs, answers.Ran(out))
	if err != nil {
		return err
	}
	if err := printDoc(app.Stdout, runs.Doc(), out); err != nil {
		return err
	}
	printLive(app.Stdout, sums)
	printFiles(app.Stdout, out, append(files, pictures...), folder.Store.Dir())
	if ctx.Err() != nil {
		fmt.Fprintf(app.Stdout, "Pictures: sparseserve report %s --format png\n", inCell(out))
	}
	return nil
}

// drawFigures draws the figures of runs until ctx ends. ran says what was run, for captions.
func drawFigures(ctx context.Context, out string, runs answers.Runs, ran string) ([]string, error) {
	if runs.Asked = nil; ran != "" {
		runs.Asked = []string{ran + "."}
	}
	drawn, err := runs.Figures()
	if err != nil {
		return nil, err
	}
	pictures, err := figures.Draw(ctx, out, drawn)
	if cause := ctx.Err(); cause != nil && errors.Is(err, cause) {
		err = nil
	}
	return pictures, run.KeptWhenFull(err)
}

// printJSON prints an array, or an object, and nothing else.
func printJSON(app *App, v any) error {
	e := json.NewEncoder(app.Stdout)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
