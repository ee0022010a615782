package answers

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/validate"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/warn"
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
	d.Warnings = Warnings(doubtful(r), len(runs))
	d.Tables = slices.Concat([]doc.Table{errors, goals}, swapped, []doc.Table{others})
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
			doc.Fixed(100*worst, "%.1f"), note)
	}
	return fmt.Sprintf("%d of %s below saturation meet every goal, %.0f %% are to.", met,
		Count(len(below), "run"), 100*validate.GoalShare), t
}

// doubtful warns of missed goals, of live runs with little evidence, and of warnings of the
// simulations.
func doubtful(r *validate.Report) (warnings []warn.Warning) {
	met, below := metOf(r.Runs)
	if float64(met) < validate.GoalShare*float64(len(below)) {
		warnings = append(warnings, warn.New(warn.GoalsMissed,
			"fewer runs than %.0f %% meet every goal", 100*validate.GoalShare))
	}
	for i := range r.Runs {
		warnings = append(warnings, said(r.Runs[i].Simulated.Warnings, r.Runs[i].Run)...)
	}
	return warnings
}

// hostOffAbove is the relative error of the host's part of decode steps above which an answer
// reports it. hostShareAbove is the smallest host part relative to the linears: some tenths of a
// millisecond come from splitting a step into phases.
const hostOffAbove, hostShareAbove = 0.15, 0.1

// slowHost reports runs in which the host's part of decode steps differs from the simulation.
func slowHost(runs []validate.ValidatedRun) []string {
	of, least, most, off := 0, math.Inf(1), 0.0, 0
	for i := range runs {
		host, ok := runs[i].Of("phase_decode_host_s")
		linears, known := runs[i].Of("phase_decode_linears_s")
		if !ok || !known || host.Simulated < hostShareAbove*linears.Simulated {
			continue
		}
		of++
		if ratio := host.Live / host.Simulated; math.Abs(ratio-1) > hostOffAbove {
			off, least, most = off+1, min(least, ratio), max(most, ratio)
		}
	}
	if off == 0 {
		return nil
	}
	times := strings.Join(slices.Compact([]string{fmt.Sprintf("%.2f", least),
		fmt.Sprintf("%.2f", most)}), " to ")
	return []string{fmt.Sprintf("In %d of %s the host's part of a decode takes %s times what is "+
		"simulated: hosts of one card differ; `sparseserve calibrate host` fits this one to a live run.",
		off, Count(of, "run"), times)}
}

// order reports whether the simulation ranks the systems as the live runs do, and lists the pairs
// that it ranks differently.
func order(r *validate.Report) (answers []string, swapped []doc.Table) {
	swaps, pairs := validate.Swaps(r.Runs)
	switch {
	case pairs == 0:
		return nil, nil
	case len(swaps) == 0:
		return []string{fmt.Sprintf("The order of the systems is the same: in all %d pairs at one load, "+
			"by mean TTFT and by throughput.", pairs)}, nil
	}
	t := doc.Table{Title: "Pairs in another order, the better live run first",
		Columns: doc.Columns("figure", "run", ">live", ">simulated")}
	for _, s := range swaps {
		m := compared(s.Metric)
		for i, run := range []*validate.ValidatedRun{s.First, s.Second} {
			c, _ := run.Of(s.Metric)
			if i == 0 {
				t.Rule()
			}
			t.Add(inRow(&m), run.Run, m.Scale*c.Live, m.Scale*c.Simulated)
		}
	}
	return []string{fmt.Sprintf("The order of the systems differs in %d of %d pairs at one load.",
		len(swaps), pairs)}, []doc.Table{t}
}

// ValidationFile is the file that identifies a validation's folder.
const ValidationFile = "validate.json"

// readValidation builds the document of a validation's folder.
func readValidation(dir string) (*doc.Doc, error) {
	r, err := validate.Read(dir)
	if err != nil {
		return nil, err
	}
	var folders []string
	for i := range r.Runs {
		folders = append(folders, filepath.Join(dir, filepath.FromSlash(r.Runs[i].SimulatedPath)))
	}
	return onMachines(Validation(r), folders, nil)
}

// Ablation returns the document on the worth of each part of the cost model.
func Ablation(a *validate.Ablation) *doc.Doc {
	d := &doc.Doc{Title: "Parts of the cost model", Lead: []string{
		"What each part of the cost model is worth: by how many points the mean absolute error of a " +
			"run's mean step time grows without it."}}
	t := doc.Table{Columns: doc.Columns("concept", "part"),
		Legend: []string{fmt.Sprintf("A part pays with %.1f points or more of either kind of step on "+
			"every card (law 12).", 100*validate.LeastWorth)}}
	for i, card := range a.Cards {
		d.Lead = append(d.Lead, fmt.Sprintf("card %d: %s, %s, with all parts %.2f %% (decode steps) and "+
			"%.2f %% (mixed steps)", i+1, card.Dir, Count(a.Runs[i], "run"), 100*a.Errors[i].Decode,
			100*a.Errors[i].Mixed))
		for _, kind := range []string{"decode", "mixed"} {
			t.Columns = append(t.Columns, doc.Columns(fmt.Sprintf(">%s %d", kind, i+1))...)
		}
	}
	for i := range a.Rows {
		r := &a.Rows[i]
		cells := []any{r.Concept, r.Part}
		for _, w := range r.Worth {
			for _, v := range []float64{w.Decode, w.Mixed} {
				cells = append(cells, doc.Fixed(100*v, "%+.2f"))
			}
		}
		if i > 0 && r.Concept != a.Rows[i-1].Concept {
			t.Rule()
		}
		t.Add(cells...)
	}
	d.Tables = []doc.Table{t}
	return d
}
