package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/experiments/validate"
	"github.com/sparseserve/sparseserve/figures"
	"github.com/sparseserve/sparseserve/internal/answers"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/traces/records"
)

type compareCmd struct {
	Measured string   `arg:"" name:"MEASURED" help:"Record of a real server: the result of vllm bench serve --save-result --save-detailed, inference-perf's per_request_lifecycle_metrics.json, guidellm's benchmarks JSON, or CSV with arrival_s,prompt_tokens,output_tokens,ttft_s,e2e_s and, where it is known, prompt_id (requests of one id have the same prompt) or content. gzip and zstd are unpacked; - reads standard input."`
	Config   string   `arg:"" optional:"" name:"CONFIG" complete:"experiments" help:"TOML file: model, card and system of the server. Its workload is not used. Without it: --set."`
	Set      []string `placeholder:"KEY=VALUE" complete:"settings" sep:"none" help:"Set a key of the configuration, as in model=llama2-7b, gpu=h100-80gb or system.max_requests=128. May be repeated."`
	Skip     float64  `placeholder:"SECONDS" help:"Leave requests that arrived before out of every figure, measured and simulated. They are simulated all the same."`
	Prefix   string   `name:"prefix-hit" default:"auto" placeholder:"SHARE" help:"Share of each prompt that came from the server's prefix cache, 0 to 1, as its log says. auto: what the prefix cache has, where the record has a column prompt_id or content; else none of it or all, whichever simulation is nearer to the record."`
	Out      string   `placeholder:"DIR" help:"Result folder. Default: out/compare/ and the name of the record and the settings, with a number if that folder holds other results."`
	Force    bool     `help:"Replace the results that the folder holds."`
	JSON     bool     `name:"json" help:"Print one JSON array, an object a stage and metric, and nothing else."`
}

// Help is what the command's help adds.
func (*compareCmd) Help() string {
	return `The requests of the record are simulated at their recorded times, with their recorded
lengths. Without a system in CONFIG the server is vLLM 0.15. Each request has one TTFT, one
end-to-end time and one TPOT, its mean time between tokens, (e2e - ttft) / (output_tokens - 1);
means and percentiles are over requests. Where the rate of arrivals changes, each stage is
compared by itself too. A client that waits for answers before it sends more is replayed at the
times that it had.`
}

// Validate is called by the parser.
func (c *compareCmd) Validate() error {
	if !(c.Skip >= 0) || math.IsInf(c.Skip, 0) {
		return fmt.Errorf("--skip %g: must be 0 or more seconds", c.Skip)
	}
	if _, err := c.prefixHit(); err != nil {
		return err
	}
	return nil
}

func (c *compareCmd) Run(ctx context.Context, app *App) error {
	record, err := records.Read(c.Measured)
	if err != nil {
		return err
	}
	prefix, err := c.prefixHit()
	if err != nil {
		return err
	}
	cfg, err := config.LoadServer(c.Config, c.Set,
		record.Identified() && prefix == validate.PrefixAuto)
	if err != nil {
		return err
	}
	name := recordName(c.Measured)
	out := c.Out
	if out == "" {
		out = filepath.Join("out", "compare", name+settingsName(c.Set))
	}
	bar := newProgress(app.Stderr, "requests")
	bar.planned(len(record.Requests))
	replay := validate.Replay{Name: name, File: files.Label(c.Measured), Record: record, Config: cfg,
		Skip: c.Skip, PrefixHit: prefix, Run: app.Run, Finished: bar.finished, Replace: c.Force}
	var report *validate.ReplayReport
	err = numbered(out, c.Out == "", func(dir string) error {
		if err := files.CheckFolder(dir, append(cfg.Paths(), c.Measured)...); err != nil {
			return err
		}
		replay.Dir = dir
		report, err = replay.Do(ctx)
		return err
	}, run.ErrTaken)
	out = replay.Dir
	bar.close()
	if cause := ctx.Err(); cause != nil && errors.Is(err, cause) {
		return errInterrupted
	}
	if err != nil {
		return err
	}
	drawn, err := answers.Requests(out, report)
	if err != nil {
		return err
	}
	pictures, err := figures.Draw(ctx, out, drawn)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(app, report.Comparisons)
	}
	err = printAnswer(app.Stdout, answers.Comparison(report),
		"sparseserve report "+inCell(out)+" --format text")
	if err != nil {
		return err
	}
	listFiles(app.Stdout, out, append(append([]string{filepath.Join(out, "trace.csv")},
		report.Files...), pictures...))
	return nil
}

// prefixHit is the share of prompts from the prefix cache, or experiments.PrefixAuto.
func (c *compareCmd) prefixHit() (float64, error) {
	if c.Prefix == "auto" {
		return validate.PrefixAuto, nil
	}
	share, err := strconv.ParseFloat(c.Prefix, 64)
	if err != nil || !(share >= 0 && share <= 1) {
		return 0, fmt.Errorf("--prefix-hit %s: want auto, or a share of each prompt from 0 to 1",
			c.Prefix)
	}
	return share, nil
}

// recordName is the file's name without what says how it is written.
func recordName(path string) string {
	if path == files.Stdin {
		return "stdin"
	}
	name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".gz"), ".zst")
	if short := strings.TrimSuffix(name, filepath.Ext(name)); short != "" {
		name = short
	}
	return name
}
