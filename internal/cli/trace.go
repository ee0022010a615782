package cli

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/internal/answers"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/traces"
)

type traceCmd struct {
	Describe describeCmd `cmd:"" help:"Count the requests of a trace and print quantiles of their lengths and gaps."`
	Convert  convertCmd  `cmd:"" help:"Write a trace as this project's own CSV."`
}

// traceFile is the input that both commands read.
type traceFile struct {
	File   string `arg:"" name:"FILE" help:"Trace file, a folder of LongBench JSONL files, or - for standard input. gzip and zstd are unpacked."`
	Format string `placeholder:"NAME" help:"${traceFormats}. Default: recognised."`
}

type describeCmd struct {
	traceFile
	Model string `placeholder:"MODEL" complete:"models" help:"Model that sets the size of KV in prefix caches, and whose tokenizer counts the texts of a trace: a name, a config.json or a folder with one. Default: llama3.1-8b, or the model of the configuration."`
	Out   string `placeholder:"DIR" help:"Write the description into this folder, and draw prefix.png if the trace has the content of prompts."`
	JSON  bool   `name:"json" help:"Print one JSON object and nothing else."`

	inputs []string // of a configuration
}

// kv returns the KV of prefix caches with blocks of `block` tokens. model is the default model.
func (d *describeCmd) kv(model string, block int) (traces.KV, error) {
	if d.Model != "" {
		model = d.Model
	}
	m, err := llm.Load(model)
	return traces.KV{Model: m.Name, TokenBytes: m.KVBytesPerToken(), BlockTokens: block,
		Tokenizer: traces.Tokenizer(m.Counter()), Guess: m.Tokenizer == ""}, err
}

// describe reads a trace, or draws the workload of a configuration.
func (d *describeCmd) describe(ctx context.Context) (traces.Description, error) {
	if filepath.Ext(d.File) != ".toml" {
		kv, err := d.kv("llama3.1-8b", 16)
		if err != nil {
			return traces.Description{}, err
		}
		return traces.Describe(ctx, d.File, d.Format, kv)
	}
	if d.Format != "" {
		return traces.Description{},
			fmt.Errorf("--format %s: %s is a configuration, not a trace; leave --format out",
				d.Format, d.File)
	}
	sweep, err := config.LoadSweep(ctx, d.File, nil)
	if err != nil {
		return traces.Description{}, err
	}
	d.inputs = sweep.Paths()
	point := sweep.Variants[0][0]
	model, err := llm.Load(point.Model)
	if err != nil {
		return traces.Description{}, err
	}
	kv, err := d.kv(point.Model, point.System.BlockTokens)
	if err != nil {
		return traces.Description{}, err
	}
	kv.Tokenizer = traces.Tokenizer(model.Counter()) // --model sizes the caches
	return traces.DescribeWorkload(ctx, d.File, point.Workload, point.Seed, kv)
}

func (d *describeCmd) Run(ctx context.Context, app *App) error {
	desc, err := d.describe(ctx)
	if err != nil {
		return err
	}
	answer := answers.Trace(&desc)
	var files []string
	if d.Out != "" {
		if files, err = d.write(ctx, &desc, answer); err != nil {
			return err
		}
	}
	if d.JSON {
		return printJSON(app, desc)
	}
	if err := printWhole(app.Stdout, answer); err != nil {
		return err
	}
	printPaths(app, files)
	return nil
}

// write writes the description and draws it.
func (d *describeCmd) write(ctx context.Context, desc *traces.Description, answer *doc.Doc) (
	[]string, error) {
	text, err := run.Marshal(desc)
	if err != nil {
		return nil, err
	}
	if err := files.CheckFolder(d.Out, append(d.inputs, d.File)...); err != nil {
		return nil, err
	}
	paths, err := run.WriteFiles(d.Out, run.File{Name: answers.DescriptionFile, Text: text})
	if err != nil {
		return nil, err
	}
	drawn, err := drawIn(ctx, d.Out, answer.Figures)
	return append(paths, drawn...), err
}

type convertCmd struct {
	traceFile
	Out string `required:"" placeholder:"FILE" help:"The CSV to write; - for standard output."`
}

func (c *convertCmd) Run(ctx context.Context, app *App) error {
	if filepath.Ext(c.File) == ".toml" {
		return fmt.Errorf("%s: a configuration, and convert takes a trace; sparseserve trace describe "+
			"describes the workload of a configuration", c.File)
	}
	if c.Out == "-" {
		_, warnings, err := traces.ConvertTo(ctx, unescaped(app.Stdout), c.File, c.Format)
		app.warn(warnings)
		return err
	}
	requests, warnings, err := traces.Convert(ctx, c.File, c.Format, c.Out)
	if err != nil {
		return err
	}
	fmt.Fprintf(app.Stdout, "%s: %s\n", inCell(c.Out), answers.Count(requests, "request"))
	app.warn(warnings)
	return nil
}

// warn prints warnings next to a result.
func (a *App) warn(warnings []warn.Warning) {
	for _, w := range warnings {
		fmt.Fprintf(a.Stderr, "warning: %s\n", oneLine(w.Text))
	}
}
