package validate

import (
	"fmt"
	"math"
	"path/filepath"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/sparseserve/sparseserve/calibrate"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/internal/files"
)

// AblationCard is a card whose kept live runs are priced: the result folder of a validation, and
// the profile of its card.
type AblationCard struct {
	Dir     string
	Profile string // "": the card that the runs name
}

// StepErrors are means over runs of the absolute error of a run's mean step time, for decode-only
// steps and for other steps.
type StepErrors struct{ Decode, Mixed float64 }

// LeastWorth is the minimum worth of a part of the cost model on every card, for decode steps or
// mixed steps (law 12: every mechanism pays).
const LeastWorth = 0.002

// AblationRow is the value of a part of the cost model: the growth of the errors without it, per
// card. A part with Worth at or below zero does not pay.
type AblationRow struct {
	Concept, Part string
	Worth         []StepErrors
}

// Ablation is the worth of each part of the cost model on some cards.
type Ablation struct {
	Cards  []AblationCard
	Runs   []int        // of each card
	Errors []StepErrors // of the whole model
	Rows   []AblationRow
}

// askedRun is a live run's calls to its device.
type askedRun struct {
	calibrate.HostRun
	dir, gpu, engine string
}

// Ablate prices the batches of kept live runs with the whole cost model and without each of its
// parts. It needs neither simulations nor a GPU.
func Ablate(cards []AblationCard) (*Ablation, error) {
	a := &Ablation{Cards: cards}
	for _, p := range hw.Parts() {
		a.Rows = append(a.Rows, AblationRow{Concept: p.Concept, Part: p.Name})
	}
	for i := range cards {
		runs, err := askedRuns(cards[i].Dir)
		if err != nil {
			return nil, err
		}
		name := cards[i].Profile
		if name == "" {
			name = runs[0].gpu
		}
		profile, err := hw.Load(name, runs[0].engine, nil)
		if err != nil {
			return nil, err
		}
		whole, err := stepErrors(runs, profile)
		if err != nil {
			return nil, err
		}
		a.Runs, a.Errors = append(a.Runs, len(runs)), append(a.Errors, whole)
		for j := range a.Rows {
			row := &a.Rows[j]
			without, err := profile.Without(row.Part)
			if err != nil {
				return nil, err
			}
			e, err := stepErrors(runs, without)
			if err != nil {
				return nil, fmt.Errorf("without %s: %w", row.Part, err)
			}
			row.Worth = append(row.Worth, StepErrors{e.Decode - whole.Decode, e.Mixed - whole.Mixed})
		}
	}
	return a, nil
}

// askedRuns reads the calls of the live runs of a result folder.
func askedRuns(dir string) ([]askedRun, error) {
	paths, err := files.Glob(dir, filepath.Join(liveFolder, "*", callsFile))
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("%s: no live run has the calls of its steps (live/RUN/%s)", dir, callsFile)
	}
	runs := make([]askedRun, len(paths))
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range runs {
		g.Go(func() (err error) {
			runs[i], err = askedIn(filepath.Dir(paths[i]))
			return err
		})
	}
	return runs, g.Wait()
}

// askedIn reads a live run's folder.
func askedIn(dir string) (r askedRun, err error) {
	p, err := config.LoadPoint(filepath.Join(dir, run.ConfigFile))
	if err != nil {
		return r, err
	}
	path := filepath.Join(dir, callsFile)
	text, err := files.ReadResult(path)
	if err != nil {
		return r, err
	}
	if r.Steps, err = unmarshalCalls(text); err != nil {
		return r, fmt.Errorf("%s: %w", path, err)
	}
	r.dir, r.gpu, r.engine, r.Options = dir, p.GPU, p.System.Engine, run.DeviceOptions(&p.System)
	model, err := llm.Load(p.Model)
	r.Model = &model
	return r, err
}

// stepErrors prices the steps of all runs.
func stepErrors(runs []askedRun, gpu *hw.Profile) (StepErrors, error) {
	errs := make([][2]float64, len(runs)) // NaN where a run has no such step
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range runs {
		g.Go(func() (err error) {
			errs[i], err = runs[i].stepErrors(gpu)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return StepErrors{}, err
	}
	var means [2]float64
	for kind := range means {
		sum, n := 0.0, 0.0
		for _, e := range errs {
			if !math.IsNaN(e[kind]) {
				sum, n = sum+e[kind], n+1
			}
		}
		means[kind] = sum / math.Max(n, 1)
	}
	return StepErrors{means[0], means[1]}, nil
}

// stepErrors returns the absolute error of the run's mean step, for decode-only steps and other
// steps.
func (r *askedRun) stepErrors(gpu *hw.Profile) (errs [2]float64, err error) {
	steps, err := r.priced(gpu)
	errs = [2]float64{math.NaN(), math.NaN()}
	for _, c := range compareSteps("", steps) {
		switch c.Metric {
		case "step_decode_mean_s":
			errs[0] = math.Abs(*c.Error)
		case "step_mixed_mean_s":
			errs[1] = math.Abs(*c.Error)
		}
	}
	return errs, err
}
