package cli

import (
	"context"
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
	model, err := hw.LoadModel(s.Weights)
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
