package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/sparseserve/sparseserve/experiments"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/experiments/whatif"
	"github.com/sparseserve/sparseserve/figures"
	"github.com/sparseserve/sparseserve/internal/answers"
	"github.com/sparseserve/sparseserve/sim"
)

type whatifCmd struct {
	Config    string   `arg:"" optional:"" name:"CONFIG" complete:"experiments" help:"TOML file of a configuration, or the name of a built-in experiment. Without it: default."`
	Vary      []string `placeholder:"KNOB=VALUES" complete:"knobs" sep:"none" help:"A knob and its values, as in link=0.5..4 or budget=1024,2048. May be repeated. Without it, --heat and --threshold: the usual knobs of hardware and policy."`
	Heat      string   `placeholder:"A,B" help:"A heat map of two knobs; over their --vary, or else half to twice of what there is."`
	Threshold []string `placeholder:"NAME" complete:"thresholds" help:"Bisect for a threshold: ${thresholds}. May be repeated."`
	Metric    string   `default:"goodput" placeholder:"METRIC" complete:"metrics" help:"What it is about: goodput, or of runs at one rate ttft_mean to delay_p99, throughput, requests, hits, prefix_hits, loads, batch. Default: ${default}."`
	Steps     int      `placeholder:"N" help:"Values of a range LOW..HIGH. Default: its ends, and 5 for a heat map."`
	Set       []string `placeholder:"KEY=VALUE" complete:"settings" sep:"none" help:"Set a key of the configuration, as in goodput.width=0.1 or workload.requests=100. May be repeated."`
	Out       string   `placeholder:"DIR" help:"Result folder. Default: out/whatif/ and the name and settings of the configuration, with a number if that folder holds another what-if."`
	Force     bool     `help:"Replace another what-if in the folder; its runs are kept."`
	Points    string   `placeholder:"DIR" help:"Where every run is kept under the hash of its configuration; sweeps and plans may share it. Default: points/ in the result folder."`
	JSON      bool     `name:"json" help:"Print one JSON object and nothing else."`
	Workers   int      `placeholder:"N" help:"Runs at a time. Default, and 0: one a core."`
}

// whatifExample is a whole small file, whatifCommands what to do with it.
const whatifExample = `model = "llama3-8b"
gpu = "a100-40gb"
seeds = [1, 2, 3]                          # three have intervals

[workload]
requests = 200

[system]
preset = "sparseserve"

[slo]
tbt_s = 0.5                                # P99 unless tbt_stat says which
delay_s = 2                                # mean

[goodput]
width = 0.1                                # of the last bracket, relative
coarse = true                              # for a first look
`

const whatifCommands = `sparseserve whatif my.toml                                 # the usual knobs
sparseserve whatif my.toml --vary link=0.5..4 --vary budget=1024,2048,4096
sparseserve whatif my.toml --heat link,hbm
sparseserve whatif my.toml --threshold offload-link
sparseserve whatif my.toml --metric ttft_p99 --set workload.rate=0.3`

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
	b.WriteString("\n  " + strings.ReplaceAll(whatifCommands, "\n", "\n  ") + "\n\n")
	return b.String() + wholeFile(whatifExample)
}

// thresholdNames lists the thresholds for help.
func thresholdNames() string {
	var names []string
	for _, t := range whatif.Thresholds() {
		names = append(names, t.Name)
	}
	return strings.Join(names, ", ")
}

func (w *whatifCmd) Run(ctx context.Context, app *App) (err error) {
	study, err := w.study()
	if err != nil {
		return err
	}
	if err := study.Check(ctx); err != nil { // before any folder is made
		return interrupted(ctx, err)
	}
	name := strings.TrimSuffix(filepath.Base(study.Config), filepath.Ext(study.Config))
	out, err := openAnswer("whatif", w.Out, name+settingsName(w.Set), study.Config, w.Force,
		study.Paths(), w.Set, w.Vary, w.Threshold, []string{w.Heat, w.Metric, fmt.Sprint(w.Steps)})
	if err != nil {
		return err
	}
	points := w.Points
	if points == "" {
		points = filepath.Join(out, "points")
	}
	store, err := run.OpenPointStore(points, app.Program(), true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	bar := newProgress(app.Stderr, "runs")
	evaluator := whatif.Evaluator{Store: store, Run: app.Run, Workers: w.Workers, Planned: bar.planned,
		Finished: bar.finished}
	found, notes, runErr := study.Do(ctx, &evaluator)
	bar.close()
	printNotes(app.Stderr, notes)
	if cause := ctx.Err(); cause != nil && errors.Is(runErr, cause) {
		runErr = fmt.Errorf("%w; finished runs are kept: the same command goes on", errInterrupted)
	}
	if runErr != nil {
		return runErr
	}
	files, err := whatif.Write(out, found)
	if err != nil {
		return err
	}
	pictures, err := figures.DrawWhatIf(ctx, out, out)
	if err != nil {
		return err
	}
	if w.JSON {
		return printJSON(app, found)
	}
	fmt.Fprintf(app.Stdout, "%s.\n", inCell(answers.Asked(study.Configs()...)))
	printWhatIf(app.Stdout, found)
	printFiles(app.Stdout, out, answerFiles(out, files, pictures), points)
	return nil
}

// study reads what the flags ask for.
func (w *whatifCmd) study() (*whatif.Study, error) {
	switch {
	case w.Workers < 0:
		return nil, fmt.Errorf("--workers %d: must be at least 1, or 0 for one a core", w.Workers)
	case w.Steps < 0 || w.Steps == 1 || w.Steps > config.MostPoints:
		return nil, fmt.Errorf("--steps %d: a range has 2 to %d values", w.Steps, config.MostPoints)
	}
	s := &whatif.Study{Config: w.Config, Set: w.Set, Steps: w.Steps}
	if s.Config == "" {
		s.Config = experiments.Default
	}
	var err error
	if s.Metric, err = whatif.MetricNamed(w.Metric); err != nil {
		return nil, err
	}
	for _, name := range w.Threshold {
		t, err := whatif.ThresholdNamed(name)
		if err != nil {
			return nil, err
		}
		s.Thresholds = append(s.Thresholds, t)
	}
	for _, flag := range w.Vary {
		r, err := whatif.ParseRange(flag)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(s.Ranges, func(o whatif.Range) bool {
			return o.Knob.Name == r.Knob.Name
		}) {
			return nil, fmt.Errorf("--vary %s: %s is varied twice", flag, r.Knob.Name)
		}
		s.Ranges = append(s.Ranges, r)
	}
	if err := w.addDefaults(s); err != nil {
		return nil, err
	}
	return s, nil
}

// addDefaults adds the ranges that no flag has.
func (w *whatifCmd) addDefaults(s *whatif.Study) error {
	named := len(s.Ranges) > 0
	if named && w.Heat == "" {
		return nil
	}
	base, err := config.LoadVaried(s.Config, s.Set, [][]config.Setting{nil}, true)
	if err != nil {
		return err
	}
	usual := whatif.Defaults(base.Variants[0].Config)
	if w.Heat == "" {
		if len(s.Thresholds) == 0 {
			s.Ranges = usual
		}
		return nil
	}
	a, b, ok := strings.Cut(w.Heat, ",")
	if !ok || a == b {
		return fmt.Errorf("--heat %s: want two knobs, as in link,hbm", w.Heat)
	}
	for _, name := range []string{a, b} {
		knob, err := whatif.KnobNamed(strings.TrimSpace(name))
		if err != nil {
			return fmt.Errorf("--heat %s: %s: %w", w.Heat, name, err)
		}
		same := func(r whatif.Range) bool { return r.Knob.Name == knob.Name }
		all := slices.Concat(s.Ranges, usual)
		i := slices.IndexFunc(all, same)
		if i < 0 {
			return fmt.Errorf("--heat %s: %s has no usual values here; give them, as in --vary %s=LOW..HIGH",
				w.Heat, name, name)
		}
		s.Heat = append(s.Heat, all[i])
	}
	return nil
}

// printWhatIf prints a table a case: the knobs with the most effect first.
func printWhatIf(w io.Writer, r *whatif.Result) {
	for i, c := range r.Cases {
		if i > 0 {
			fmt.Fprintln(w)
		}
		where := fmt.Sprintf("%s: %s on %s", inCell(c.Name), inCell(c.Model), inCell(c.GPU))
		if load := c.Load(); load != "" {
			where += ", " + load
		}
		fmt.Fprintf(w, "%s, %s, %s %s\n", where, count(c.Requests, "request"),
			plural(len(c.Seeds), "seed"),
			strings.Trim(strings.ReplaceAll(fmt.Sprint(c.Seeds), " ", ", "), "[]"))
		printKnobs(w, r, c)
		printHeat(w, r, c)
		for _, x := range c.Thresholds {
			fmt.Fprintf(w, "%s: %s\n", x.Question, x.Text)
		}
		if c.SLO != "" {
			fmt.Fprintf(w, "SLO: %s\n", c.SLO)
		}
	}
	for _, note := range r.Notes {
		fmt.Fprintf(w, "%s\n", oneLine(note))
	}
	var sums []sim.Summary
	for _, c := range r.Cases {
		sums = append(sums, sim.Summary{Name: c.Name, System: c.Name, Rate: c.Rate,
			Warnings: c.Base.Warnings})
	}
	printWarnings(w, nil, sums)
}

func printKnobs(w io.Writer, r *whatif.Result, c *whatif.Case) {
	if len(c.Knobs) == 0 {
		return
	}
	fmt.Fprintf(w, "%s: %s\n", r.Label, digits(c.Base.Value))
	t := newTable(w)
	t.AppendHeader(table.Row{"knob", "has", "value", r.Metric, "change", "interval", "limited by"})
	t.AppendHeader(table.Row{"", "", "", "", "%", "95 %", ""})
	for _, k := range c.Sorted() {
		for j, p := range k.Points {
			name, has := "", ""
			if j == 0 {
				name, has = k.Knob, factor(k, k.Base)
			}
			interval := "-"
			if p.Low != nil {
				interval = signed(100**p.Low) + " to " + signed(100**p.High)
			}
			t.AppendRow(table.Row{name, has, factor(k, p.Setting), digits(p.Value.Value),
				signed(100 * p.Change), interval, p.LimitedBy})
		}
	}
	t.SetColumnConfigs(rightAligned(2, 6))
	t.Render()
}

// factor marks a factor as one.
func factor(k *whatif.KnobResult, value string) string {
	if k.Factor {
		return "x " + value
	}
	return value
}

func signed(v float64) string {
	if text := strconv.FormatFloat(v, 'f', 1, 64); text != "0.0" && text != "-0.0" && v > 0 {
		return "+" + text
	} else if text != "-0.0" {
		return text
	}
	return "0.0"
}

func printHeat(w io.Writer, r *whatif.Result, c *whatif.Case) {
	h := c.Heat
	if h == nil {
		return
	}
	fmt.Fprintf(w, "%s, %s across and %s down\n", r.Label, h.A, h.B)
	t := newTable(w)
	head := table.Row{""}
	for _, v := range h.ValuesA {
		head = append(head, v)
	}
	t.AppendHeader(head)
	for i, row := range h.Cells {
		line := table.Row{h.ValuesB[i]}
		for _, v := range row {
			cell := "-"
			if v != nil {
				cell = digits(*v)
			}
			line = append(line, cell)
		}
		t.AppendRow(line)
	}
	t.SetColumnConfigs(rightAligned(1, len(h.ValuesA)+1))
	t.Render()
}
