package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/sparseserve/sparseserve/cuda/live"
	"github.com/sparseserve/sparseserve/cuda/weights"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/papers"
	"github.com/sparseserve/sparseserve/experiments/patterns"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/internal/answers"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/show"
	"github.com/sparseserve/sparseserve/sim/pattern"
)

// paperFolder is the folder of the papers' figures and results.
const paperFolder = "out/paper"

type paperCmd struct {
	Run      paperRun       `cmd:"" help:"Run experiments of the papers."`
	Claims   claimsCmd      `cmd:"" help:"Compare what the papers claim with what the simulator finds."`
	Figures  paperFigures   `cmd:"" help:"Draw the figures of the papers, after running what they need."`
	Patterns searchPatterns `cmd:"" help:"Find the best pattern of sparse prefill at equal cost, of a model's heads."`
}

// paperFlags set where the results of the papers' experiments are, and how they are made.
type paperFlags struct {
	Out     string `default:"${paperFolder}" placeholder:"DIR" help:"Where results, runs and figures are kept. Default: ${default}."`
	Workers uint   `placeholder:"N" help:"Runs at a time. Default, and 0: one a core."`
}

type paperRun struct {
	Names []string `arg:"" optional:"" name:"NAME" complete:"figures" help:"Experiments or figures, as in fig10a or fig10. Default: all but the long ones."`
	paperFlags
}

// Run implements the command.
func (p *paperRun) Run(ctx context.Context, app *App) error {
	return p.make(ctx, app, papers.Studies{Dir: p.results()})
}

// make runs the experiments that the command names, alone or by their figures.
func (p *paperRun) make(ctx context.Context, app *App, studies papers.Studies) error {
	needed, err := papers.Needed(p.Names)
	if err != nil || len(needed) == 0 && len(p.Names) > 0 {
		return err
	}
	return p.run(ctx, app, studies, needed...)
}

type paperFigures struct {
	paperRun
	All    bool   `help:"Draw all seeds, as claims do, which takes minutes. Default: the first seed alone."`
	Format string `enum:"png,svg,pdf" default:"png" help:"Format of the pictures: png, svg or pdf. Default: ${default}."`
}

// Run implements the command.
func (p *paperFigures) Run(ctx context.Context, app *App) error {
	studies := papers.Studies{Dir: p.results()}
	if !p.All {
		studies.Dir, studies.Sets = filepath.Join(p.Out, "first-seed"), []string{"seed=1"}
	}
	if err := p.make(ctx, app, studies); err != nil {
		return err
	}
	pictures, err := studies.Figures(ctx, p.Names, answers.Ran)
	if err != nil {
		return err
	}
	drawn, err := drawIn(ctx, p.Out, pictures, p.Format)
	printPaths(app, drawn)
	return err
}

// results returns the folder with the tables of each experiment.
func (p *paperFlags) results() string { return filepath.Join(p.Out, "results") }

// run runs experiments of the papers, with a progress bar on a terminal. Runs are stored below the
// folder.
func (p *paperFlags) run(ctx context.Context, app *App, studies papers.Studies,
	names ...string) (err error) {
	store, err := run.OpenStore(filepath.Join(p.Out, run.RunsFolder), app.Version, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	bar := newProgress(app.Stderr, "runs")
	studies.Store, studies.Run, studies.Workers = store, app.Run, int(p.Workers)
	studies.Planned, studies.Finished = bar.planned, bar.finished
	err = studies.Do(ctx, names...)
	bar.close()
	printNotes(app.Stderr, store.Notes())
	return goesOn(ctx, err)
}

// searchSeed is the seed of the prompt.
const searchSeed = 1

type searchPatterns struct {
	Tokens  int      `default:"4096" placeholder:"N" help:"Tokens of the prompt. Default: ${default}."`
	Card    string   `default:"a100-80gb" placeholder:"CARD" complete:"cards" help:"Whose kernels say what costs alike (list gpus). Default: ${default}."`
	Weights string   `required:"" placeholder:"DIR" help:"A folder with config.json and safetensors: its heads are searched on a prompt of random tokens."`
	Live    liveMode `help:"The GPU of this machine computes queries, keys and values in fp16 (--live=gpu, the same as --live), or a reference of it in Go (--live=reference). Default: the CPU, exactly, for tiny models."`
	Out     string   `placeholder:"FILE" help:"Write the found patterns, in MInference's format."`
}

// Run implements the command.
func (s *searchPatterns) Run(ctx context.Context, app *App) error {
	if s.Tokens < 512 || s.Tokens > 65_536 {
		return fmt.Errorf("--tokens %d: must be 512 to 65536", s.Tokens)
	}
	if s.Out != "" {
		if err := files.CheckOutput(s.Out, s.Weights); err != nil { // before heads are searched
			return err
		}
	}
	gpu, err := hw.Load(s.Card, config.ServerPreset, nil)
	if err != nil {
		return err
	}
	model, err := llm.Load(s.Weights)
	if err != nil {
		return err
	}
	space, err := patterns.Space(gpu, &model, s.Tokens)
	if err != nil {
		return err
	}
	columns := terminalColumns(app.Stdout)
	show.Table(app.Stdout, new(answers.PatternSpace(gpu, &model, s.Tokens, space)), columns)
	folder, err := weights.Open(s.Weights)
	if err != nil {
		return err
	}
	defer folder.Close()
	all, err := s.search(ctx, folder, space)
	if err != nil {
		return err
	}
	show.Table(app.Stdout, new(answers.FoundPatterns(all.Groups())), columns)
	if s.Out == "" {
		return nil
	}
	if err := files.Write(s.Out, all.Encode(), s.Weights); err != nil {
		return err
	}
	_, err = fmt.Fprintf(app.Stdout, "%s: written; use it with --set prefill.attention="+
		"minference --set prefill.pattern=%[1]s\n", inCell(s.Out))
	return err
}

// search finds the patterns of a model's heads, layer by layer.
func (s *searchPatterns) search(ctx context.Context, w weights.Source, space []pattern.Head) (
	all pattern.Table, err error) {
	each := func(heads []*patterns.Head) error {
		head := func(i int) (*patterns.Head, error) { return heads[i], nil }
		found, err := patterns.Search(ctx, len(heads), head, space)
		all = append(all, found)
		return err
	}
	if s.Live != "" {
		flags := liveFlags{Live: s.Live}
		machine, err := flags.machine()
		if err != nil {
			return nil, err
		}
		err = machine.On(func(m live.Machine) error {
			return patterns.OnMachine(m, w, s.Tokens, searchSeed, each)
		})
		return all, err
	}
	layers, err := patterns.OfModel(w, s.Tokens, searchSeed)
	for i := 0; i < len(layers) && err == nil; i++ {
		err = each(layers[i])
	}
	return all, err
}
