package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/sparseserve/sparseserve/cuda/live"
	"github.com/sparseserve/sparseserve/cuda/weights"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/patterns"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/internal/answers"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/show"
	"github.com/sparseserve/sparseserve/sim/pattern"
)

type patternsCmd struct {
	Describe describePatterns `cmd:"" help:"Count the heads of a pattern file, or of a published mix, by pattern, and say what they compute."`
	Search   searchPatterns   `cmd:"" help:"Find the best pattern at equal cost of heads with a planted one, or of a model's heads."`
}

type describePatterns struct {
	File string `arg:"" name:"FILE" help:"Pattern file in MInference's format, or a published mix (list prefills)."`
}

func (d *describePatterns) Run(app *App) error {
	groups := pattern.Counts(d.File)
	if groups == nil {
		found, err := config.ReadPatterns(d.File)
		if err != nil {
			return err
		}
		groups = found.Groups()
		fmt.Fprintf(app.Stdout, "%s: %d layers of %d heads\n", inCell(d.File), len(found), len(found[0]))
	}
	return app.print(answers.Patterns(groups), nil)
}

type searchPatterns struct {
	Tokens  int      `default:"4096" placeholder:"N" help:"Tokens of the prompt. Default: ${default}."`
	Heads   int      `default:"60" placeholder:"N" help:"Planted heads. Default: ${default}."`
	Seed    uint64   `default:"1" placeholder:"N" help:"Of planted heads, or of the prompt. Default: ${default}."`
	GPU     string   `name:"gpu" default:"a100-80gb" placeholder:"CARD" complete:"cards" help:"Whose kernels say what costs alike (list gpus). Default: ${default}."`
	Model   string   `default:"llama3-8b-1m" placeholder:"NAME" complete:"models" help:"Model of which planted heads are one (list models). Default: ${default}."`
	Weights string   `placeholder:"DIR" help:"A folder with config.json and safetensors: search its heads on a prompt of random tokens."`
	Live    liveMode `help:"With --weights: the GPU of this machine computes queries, keys and values in fp16 (--live=gpu, the same as --live), or a reference of it in Go (--live=reference). Default: the CPU, exactly, for tiny models."`
	libraryFlag
	Out string `placeholder:"FILE" help:"Write the found patterns of --weights, in MInference's format."`
}

// Validate is called by the parser.
func (s *searchPatterns) Validate() error {
	switch {
	case s.Heads < 1 || s.Heads > 100_000:
		return fmt.Errorf("--heads %d: must be 1 to 100000", s.Heads)
	case s.Tokens < 512 || s.Tokens > 65_536:
		return fmt.Errorf("--tokens %d: must be 512 to 65536", s.Tokens)
	case s.Live != "" && s.Weights == "":
		return errors.New("--live: is for the heads of --weights")
	case s.Library != "" && s.Live == "":
		return errors.New("--library is for --live")
	case s.Out != "" && s.Weights == "":
		return fmt.Errorf("--out %s: is for the heads of --weights; planted ones are of no model", s.Out)
	}
	return nil
}

func (s *searchPatterns) Run(ctx context.Context, app *App) error {
	gpu, err := hw.Load(s.GPU, config.ServerPreset, nil)
	if err != nil {
		return err
	}
	if s.Weights != "" {
		return s.weights(ctx, app, gpu)
	}
	model, err := hw.LoadModel(s.Model)
	if err != nil {
		return err
	}
	space, err := patterns.Space(gpu, &model, s.Tokens)
	if err != nil {
		return err
	}
	show.Table(app.Stdout, new(answers.PatternSpace(gpu, &model, s.Tokens, space)),
		terminalColumns(app.Stdout))
	kinds := make([]pattern.Kind, s.Heads)
	found, err := patterns.Search(ctx, s.Heads, func(i int) (h *patterns.Head, err error) {
		h, kinds[i] = patterns.Planted(s.Seed, i, s.Tokens)
		return h, nil
	}, space)
	if err != nil {
		return err
	}
	return app.print(answers.Confusions(kinds, found), nil)
}

// weights searches the heads of a model.
func (s *searchPatterns) weights(ctx context.Context, app *App, gpu *hw.Profile) error {
	if s.Out != "" {
		if err := files.CheckOutput(s.Out, s.Weights); err != nil { // before they are searched
			return err
		}
	}
	model, err := hw.LoadModel(s.Weights)
	if err != nil {
		return err
	}
	space, err := patterns.Space(gpu, &model, s.Tokens)
	if err != nil {
		return err
	}
	show.Table(app.Stdout, new(answers.PatternSpace(gpu, &model, s.Tokens, space)),
		terminalColumns(app.Stdout))
	folder, err := weights.Open(s.Weights)
	if err != nil {
		return err
	}
	defer folder.Close()
	all, err := s.search(ctx, folder, space)
	if err != nil {
		return err
	}
	show.Table(app.Stdout, new(answers.FoundPatterns(all.Groups())), terminalColumns(app.Stdout))
	if s.Out == "" {
		return nil
	}
	if err := files.Write(s.Out, all.Encode(), s.Weights); err != nil {
		return err
	}
	fmt.Fprintf(app.Stdout, "%s: written; use it with --set system.prefill_attention=minference "+
		"--set system.prefill_pattern=%[1]s\n", inCell(s.Out))
	return nil
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
		flags := liveFlags{Live: s.Live, libraryFlag: s.libraryFlag}
		machine, err := flags.machine()
		if err != nil {
			return nil, err
		}
		err = machine.On(func(m live.Machine) error {
			return patterns.OnMachine(m, w, s.Tokens, s.Seed, each)
		})
		return all, err
	}
	layers, err := patterns.OfModel(w, s.Tokens, s.Seed)
	for i := 0; i < len(layers) && err == nil; i++ {
		err = each(layers[i])
	}
	return all, err
}
