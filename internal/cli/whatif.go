package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/capacity"
	"github.com/sparseserve/sparseserve/experiments/whatif"
	"github.com/sparseserve/sparseserve/internal/answers"
	"github.com/sparseserve/sparseserve/internal/doc"
)

type whatifCmd struct {
	configArg
	Vary      []string `placeholder:"KNOB=VALUES" complete:"knobs" sep:"none" help:"A knob and its values, as in link=0.5..4 or budget=1024,2048. May be repeated. Without it, --heat and --threshold: the usual knobs of hardware and policy."`
	Heat      string   `placeholder:"A,B" help:"A heat map of two knobs; over their --vary, or else half to twice of what there is."`
	Threshold []string `placeholder:"NAME" complete:"thresholds" help:"Bisect for a threshold: ${thresholds}. May be repeated."`
	Metric    string   `default:"goodput" placeholder:"METRIC" complete:"metrics" help:"What it is about: goodput, or of runs at one rate ttft_mean to delay_p99, throughput, requests, hits, prefix_hits, loads, batch. Default: ${default}."`
	Steps     int      `placeholder:"N" help:"Values of a range LOW..HIGH. Default: its ends, and 5 for a heat map."`
	searchFlags
}

// Help is shown below the command's help.
func (w *whatifCmd) Help() string {
	var b strings.Builder
	b.WriteString("Knobs with short names; any other key of a configuration is one too. Values of x " +
		"are factors:\n\n")
	for _, k := range whatif.Knobs() {
		unit := "   "
		if k.Factor {
			unit = " x "
		}
		fmt.Fprintf(&b, "  %-14s%s%s: %s\n", k.Name, unit, k.About, strings.Join(k.Keys, ", "))
	}
	b.WriteString("\nThresholds:\n\n")
	for _, t := range whatif.Thresholds() {
		fmt.Fprintf(&b, "  %-16s%s\n", t.Name, t.Question)
	}
	return b.String()
}

// Run implements the command.
func (w *whatifCmd) Run(ctx context.Context, app *App) error {
	study := whatif.Study{Config: w.Config, Set: w.Set, Vary: w.Vary, Heat: w.Heat,
		Thresholds: w.Threshold, Metric: w.Metric, Steps: w.Steps}
	if err := study.Check(ctx); err != nil { // before any folder is made
		return err
	}
	name := strings.TrimSuffix(filepath.Base(study.Config), filepath.Ext(study.Config))
	flags := slices.Concat(w.Set, w.Vary, w.Threshold, []string{w.Heat, w.Metric, fmt.Sprint(w.Steps)})
	return w.search(ctx, app, &question{command: "whatif", folder: name + settingsName(w.Set),
		file: study.Config, asked: flags, inputs: study.Paths(), unit: "runs",
		find: func(planner *capacity.Planner) (*answer, error) {
			found, err := study.Do(ctx, planner)
			return &answer{found, func(name string) *doc.Doc {
				return answers.WhatIf(name, found, study.Runs())
			}, found.Files}, err
		}})
}
