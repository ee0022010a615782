package answers

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/validate"
	"github.com/sparseserve/sparseserve/internal/doc"
)

// delayKey is a figure without a goal. It is shown because service levels bound it.
const delayKey = "queue_delay_mean_s"

// withGoals are the figures with goals. The others explain their errors.
var (
	withGoals = []string{"ttft_mean_s", "ttft_p99_s", "tbt_mean_s", "tbt_p99_s", "throughput_tok_s",
		"blocks_loaded_per_step"}
	ofSteps    = []string{"step_decode_mean_s", "step_mixed_mean_s"}
	explaining = append([]string{delayKey, "hit_ratio", "steps"}, ofSteps...)
)

// Validation returns the document that compares live runs with their simulation, the worst run
// first and runs at saturation last.
func Validation(r *validate.Report) *doc.Doc {
	runs := r.WorstFirst()
	d := &doc.Doc{Title: r.Name + ": live and simulated",
		Lead: []string{fmt.Sprintf("%s on %s: simulated over live less 1, in %%.", r.Name, r.Device)}}
	met, goals := goalsMet(runs)
	inOrder, swapped := order(r)
	d.Answers = slices.Concat([]string{met}, slowHost(runs), inOrder)
	errors := errorsOf(runs, "Errors", withGoals)
	errors.Legend = []string{"! beyond its goal"}
	others := errorsOf(runs, "Other errors", explaining)
	others.Folded = true
	others.Legend = []string{"steps: how many",
		"decode step, mixed step: the model's time of the live run's own batches"}
	warnings, folders := doubtful(r)
	d.Warnings = Warnings(warnings, len(runs))
	d.Tables = slices.Concat([]doc.Table{errors, goals}, swapped, folders, []doc.Table{others})
	d.Figures = drawable(overLive(r))
	return d
}

// errorsOf has one row per run and one column per figure with the error of the simulation in %.
func errorsOf(runs []validate.ValidatedRun, title string, keys []string) doc.Table {
	t := doc.Table{Title: title, Columns: doc.Columns("run")}
	for _, key := range keys {
		m := compared(key)
		t.Columns = append(t.Columns, doc.Column{Name: m.Name, Unit: statOf(&m), Number: true})
	}
	t.Columns = append(t.Columns, doc.Columns("goals")...)
	for i := range runs {
		run, missed := &runs[i], runs[i].Misses()
		cells := []any{run.Run}
		for _, key := range keys {
			c, has := run.Of(key)
			cell := doc.None()
			switch {
			case !has:
				cell = doc.Cell{} // no column if no run has it
			case c.Live == 0 && c.Simulated == 0:
			case c.Error == nil:
				cell = doc.Text("0 live")
			default:
				cell = off(c.Error)
			}
			if slices.Contains(missed, key) {
				cell.Mark = "!"
			}
			cells = append(cells, cell)
		}
		if i > 0 && run.Saturated != runs[i-1].Saturated {
			t.Rule()
		}
		t.Add(append(cells, judged(run, missed))...)
	}
	return t
}

func judged(run *validate.ValidatedRun, missed []string) string {
	switch {
	case run.Saturated:
		return "saturated"
	case len(missed) == 0:
		return "met"
	}
	return "missed"
}

// metOf lists the runs below saturation, and counts the runs among them without a missed goal.
func metOf(runs []validate.ValidatedRun) (met int, below []validate.ValidatedRun) {
	below = where(runs, func(r *validate.ValidatedRun) bool { return !r.Saturated })
	return len(where(below, func(r *validate.ValidatedRun) bool { return len(r.Misses()) == 0 })),
		below
}

// delayNear is the relative error up to which a mean scheduling delay counts as near.
const delayNear = 0.10

// goalsMet reports how many runs below saturation meet every goal, with one row per goal. A run in
// which a figure is 0 on both sides, such as blocks loaded without offloading, does not count as
// met.
func goalsMet(runs []validate.ValidatedRun) (answer string, t doc.Table) {
	t = doc.Table{Title: "Goals of runs below saturation",
		Columns: doc.Columns("figure", ">within|%", ">runs", ">of", ">the worst|%", "note")}
	met, below := metOf(runs)
	if len(below) == 0 {
		return "No run is below saturation; the goals are for those.", t
	}
	goals := validate.Goals()
	goals[delayKey] = delayNear
	for _, key := range append(slices.Clone(withGoals), delayKey) {
		within, of, worst := 0, 0, 0.0
		for i := range below {
			c, has := below[i].Of(key)
			if !has || c.Live == 0 && c.Simulated == 0 {
				continue
			}
			of++
			if c.Error == nil {
				continue // it is 0 live
			}
			e := math.Abs(*c.Error)
			if worst = max(worst, e); e <= goals[key] {
				within++
			}
		}
		if of == 0 {
			continue
		}
		note := ""
		if key == delayKey {
			note = "no goal"
		}
		m := compared(key)
		t.Add(strings.TrimSpace(m.Name+" "+statOf(&m)), int(100*goals[key]), within, of,
			doc.As(100*worst, fmt.Sprintf("%.1f", 100*worst)), note)
	}
	return fmt.Sprintf("%d of %s below saturation meet every goal, %.0f %% are to.", met,
		Count(len(below), "run"), 100*validate.GoalShare), t
}
