package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments"
	"github.com/sparseserve/sparseserve/experiments/capacity"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/answers"
)

type planCmd struct {
	Config  string   `arg:"" optional:"" name:"CONFIG" complete:"experiments" help:"TOML file of a configuration, with [[axis]] tables for what is to be compared and [plan] for what to buy, or the name of a built-in experiment. Without it: default."`
	Set     []string `placeholder:"KEY=VALUE" complete:"settings" sep:"none" help:"Set a key that is no axis, as in goodput.width=0.05 or seeds=[1,2,3,4,5]. May be repeated."`
	Out     string   `placeholder:"DIR" help:"Result folder. Default: out/plan/ and the name and settings of the configuration, with a number if that folder holds another plan."`
	Force   bool     `help:"Replace another plan in the folder; its runs are kept."`
	Points  string   `placeholder:"DIR" help:"Where every run is kept under the hash of its configuration; sweeps and plans may share it. Default: points/ in the result folder."`
	JSON    bool     `name:"json" help:"Print JSON and nothing else: an array, an object a candidate; with [plan], one object."`
	Workers int      `placeholder:"N" help:"Runs at a time. Default, and 0: one a core."`
	planFlags
	jobFlags
}

// planQuestion is what a plan is to find.
type planQuestion struct {
	*config.Sweep
	candidates []capacity.Candidate // without [plan]
	offers     *capacity.Offers     // with it
	folder     string               // name of its results
}

// planExample is a whole small file of a plan.
const planExample = `model = "llama3-8b"

[workload]
requests = 200

[system]
preset = ["vllm-0.15", "sparseserve"]
engine = "vllm-0.15"                       # of both; each system names its own

[slo]
ttft_s = 3                                 # P99 unless ttft_stat says which
tbt_s = 0.1

[goodput]
start = 0.5                                # first rate, requests/s
width = 0.1                                # of the last bracket, relative

# [plan]                                   # what to buy for workload.rate, in place of the largest rate
# prices = "mid"                           # list prices

[[axis]]
grid.gpu = ["a100-80gb", "h100-80gb"]
`

// Help is shown below the command's help.
func (p *planCmd) Help() string {
	return "What to buy, without a file: for the current vLLM at the middle of public prices.\n\n" +
		"  sparseserve plan --model llama3.1-8b --gpus h100,h200 --input 64k --output 400 --rate 1 " +
		"--ttft 15s --tbt 100ms\n\n" +
		"Where no seed is set, each rate is run with the seeds 1, 2 and 3: intervals need " +
		"three. A [plan] has one.\n\n" + wholeFile(planExample)
}

func (p *planCmd) Run(ctx context.Context, app *App) (err error) {
	if p.Workers < 0 {
		return fmt.Errorf("--workers %d: must be at least 1, or 0 for one a core", p.Workers)
	}
	cluster, err := p.cluster(p.JSON)
	if err != nil {
		return err
	}
	watch, end := app.watch(ctx)
	defer end()
	q, err := p.question(watch)
	if err != nil {
		return err
	}
	if cluster != nil {
		if err := checkJobWords(append(p.Set, p.Config, p.Out, q.folder, p.Points)...); err != nil {
			return err
		}
	}
	out, err := openAnswer("plan", p.Out, q.folder, p.Config, p.Force, q.Paths(), p.Set, p.GPUs)
	if err != nil {
		return err
	}
	points := cmp.Or(p.Points, filepath.Join(out, "points"))
	if cluster != nil {
		return p.writeJob(app, cluster, q, out, points)
	}
	store, err := run.OpenPointStore(points, app.Version, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()

	if q.offers == nil && q.RateGiven {
		printNotes(app.Stderr, []string{"workload.rate is not used: this plan finds the largest rate; " +
			"for what to buy for that rate, add a [plan] table or --set plan.prices=mid"})
	}
	planner := capacity.Planner{Store: store, Run: app.Run, Workers: p.Workers}
	if q.offers != nil {
		return p.purchase(ctx, app, &planner, q.offers, out, points)
	}
	bar := newProgress(app.Stderr, "runs")
	bar.planned(capacity.GuessRuns(&q.Goodput, q.candidates...))
	planner.Planned, planner.Finished = bar.planned, bar.finished
	found, notes, runErr := planner.Do(ctx, q.Goodput, q.candidates)
	bar.close()
	printNotes(app.Stderr, notes)
	if runErr != nil {
		return interruptedPlan(ctx, runErr)
	}
	asked := answers.Asked(q.Configs()...)
	for i := range found {
		found[i].Asked = asked
	}
	files, err := capacity.WritePlan(out, found)
	if err != nil {
		return err
	}
	d := answers.Goodputs(filepath.Base(out), found)
	return finishAnswer(ctx, app, answer{found, d, out, points, files, p.JSON})
}

// purchase looks for what to buy, writes the answer into a folder and prints it.
func (p *planCmd) purchase(ctx context.Context, app *App, planner *capacity.Planner,
	offers *capacity.Offers, out, points string) error {
	bar := newProgress(app.Stderr, "candidates")
	planner.Planned, planner.Finished, planner.Say = bar.planned, bar.finished, bar.say
	found, notes, err := planner.Purchase(ctx, offers)
	bar.close()
	printNotes(app.Stderr, notes)
	if err != nil {
		return interruptedPlan(ctx, err)
	}
	files, err := found.Write(out)
	if err != nil {
		return err
	}
	d := answers.Purchase(filepath.Base(out), found)
	return finishAnswer(ctx, app, answer{found, d, out, points, files, p.JSON})
}

// question reads what is asked.
func (p *planCmd) question(watch config.Watch) (q planQuestion, err error) {
	own := settingsName(p.Set)
	if p.GPUs, err = p.cards(); err != nil {
		return q, err
	}
	switch asked := len(p.GPUs)+len(p.sets()) > 0; {
	case p.Config == "" && asked:
		q.folder = p.name(slices.Clone(p.GPUs)) + own
		p.Set, err = p.alone(p.Set)
	default:
		p.Set = append(p.sets(), p.Set...)
	}
	if err != nil {
		return q, err
	}
	if p.Config == "" {
		p.Config = experiments.Default
	}
	if q.Sweep, err = config.LoadPlan(p.Config, p.Set, watch, p.GPUs...); err != nil {
		return q, err
	}
	if q.folder == "" {
		q.folder = q.Name + settingsName(p.Set)
	}
	if q.Plan == nil {
		q.candidates, err = capacity.Candidates(q.Sweep)
	} else {
		q.offers, err = capacity.OffersOf(q.Sweep)
	}
	return q, err
}

// openAnswer opens the folder of a command's answer. Without out it is the first of
// out/COMMAND/NAME, out/COMMAND/NAME-2, .. that is new or has the answer to this question: settings
// and the texts of the configuration and of those that it starts from. It holds none of the inputs.
func openAnswer(command, out, name, cfg string, force bool, inputs []string, asked ...[]string) (
	string, error) {
	texts, err := config.Texts(cfg)
	if err != nil {
		return "", err
	}
	question := fmt.Appendf(nil, "%s %q\n%s", command, asked, strings.Join(texts, "\n"))
	first := out
	if first == "" {
		first = filepath.Join("out", command, name)
	}
	err = numbered(first, out == "", func(dir string) error {
		out = dir
		return run.OpenAnswer(dir, question, force, inputs...)
	}, run.ErrTaken)
	return out, err
}

// interruptedPlan is the error of a plan that did not end.
func interruptedPlan(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil && errors.Is(err, cause) {
		return fmt.Errorf("%w; finished runs are kept: the same command goes on", errInterrupted)
	}
	return err
}
