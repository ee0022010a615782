package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/diff"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/experiments/validate"
	"github.com/sparseserve/sparseserve/internal/answers"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/traces/records"
)

type compareCmd struct {
	A string `arg:"" name:"A" help:"Log of a real server: the result of vllm bench serve or of SGLang's bench_serving, with requests (--save-detailed, --output-details) or aggregates alone, AIPerf's profile_export.jsonl, genai-perf's profile_export.json, llmperf's individual_responses.json, a report or requests of trtllm-bench, inference-perf's per_request_lifecycle_metrics.json, guidellm's benchmarks JSON, LMBenchmark's CSV, or CSV with arrival_s,prompt_tokens,output_tokens,ttft_s,e2e_s and, where it is known, prompt_id (requests of one id have the same prompt) or content. Of several runs in one file the last is read. gzip and zstd are unpacked; - reads standard input. Or a result folder."`
	B string `arg:"" optional:"" name:"B" complete:"experiments" help:"Of a log, the TOML file of its server: model, card and system; its workload is not used, and --set does without it. Of a result folder, another one."`
	settings
	Skip   float64 `placeholder:"SECONDS" help:"Of a log, leave requests that arrived before out of every figure, measured and simulated. They are still simulated."`
	Prefix string  `name:"prefix-hit" placeholder:"SHARE" help:"Of a log, the share of each prompt that came from the server's prefix cache, 0 to 1. Default, and auto: the simulated prefix cache finds hits if the log has a column prompt_id or content; otherwise none or the whole prompt, whichever simulation is nearer to the log."`
	resultFlags
}

// Run implements the command.
func (c *compareCmd) Run(ctx context.Context, app *App) error {
	if isFolder(c.A) {
		return c.folders(app)
	}
	if !(c.Skip >= 0) || math.IsInf(c.Skip, 0) {
		return fmt.Errorf("--skip %g: must be 0 or more seconds", c.Skip)
	}
	prefix, err := c.prefixHit()
	if err != nil {
		return err
	}
	record, err := records.Read(c.A)
	if err != nil {
		return err
	}
	cfg, err := config.LoadServer(c.B, c.Set,
		record.Identified() && prefix == validate.PrefixAuto, record.Server())
	if err != nil {
		return err
	}
	name := recordName(c.A)
	out := cmp.Or(c.Out, filepath.Join("out", "compare", name+settingsName(c.Set)))
	bar := newProgress(app.Stderr, "requests")
	bar.planned(len(record.Requests))
	replay := validate.Replay{Name: name, File: files.Label(c.A), Record: record, Config: cfg,
		Skip: c.Skip, PrefixHit: prefix, Run: app.Run, Finished: bar.finished, Replace: c.Force,
		Inputs: append(cfg.Paths(), c.A, c.B)}
	var report *validate.ReplayReport
	err = numbered(out, c.Out == "", func(dir string) error {
		replay.Dir = dir
		report, err = replay.Do(ctx)
		return err
	}, run.ErrTaken)
	out = replay.Dir
	bar.close()
	if err != nil {
		return err
	}
	d := answers.Comparison(report)
	if d.Figures, err = answers.Requests(out, report); err != nil {
		return err
	}
	return app.show(ctx, out, d, c.JSON, report.Comparisons, report.Files)
}

// folders compares two result folders.
func (c *compareCmd) folders(app *App) error {
	switch {
	case c.B == "":
		return fmt.Errorf("compare %s: expected another result folder to compare it with", c.A)
	case len(c.Set) > 0 || c.Skip != 0 || c.Prefix != "" || c.Out != "" || c.Force:
		return errors.New("compare of two result folders has no flag but --json")
	}
	a, err := diff.Read(c.A)
	if err != nil {
		return err
	}
	b, err := diff.Read(c.B)
	if err != nil {
		return err
	}
	report, err := diff.Compare(a, b)
	if err != nil {
		return err
	}
	return printEither(app, c.JSON, report, answers.Diff(report, c.A, c.B))
}

// prefixHit returns the share of prompts that hit the prefix cache, or validate.PrefixAuto.
func (c *compareCmd) prefixHit() (float64, error) {
	if c.Prefix == "" || c.Prefix == "auto" {
		return validate.PrefixAuto, nil
	}
	share, err := strconv.ParseFloat(c.Prefix, 64)
	if err != nil || !(share >= 0 && share <= 1) {
		return 0, fmt.Errorf("--prefix-hit %s: want auto, or a share of each prompt from 0 to 1",
			c.Prefix)
	}
	return share, nil
}

// recordName returns the file's name without its format endings.
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
