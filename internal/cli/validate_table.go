package cli

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/sparseserve/sparseserve/experiments/validate"
)

// shown are the figures that a table row shows, with the error of each.
var shown = []struct{ metric, title, unit string }{
	{"ttft_mean_s", "TTFT", "mean"}, {"ttft_p99_s", "TTFT", "P99"},
	{"tbt_mean_s", "TBT", "mean"}, {"tbt_p99_s", "TBT", "P99"},
	{"throughput_tok_s", "through-", "put"}, {"queue_delay_mean_s", "sched.", "delay"},
	{"blocks_loaded_per_step", "blocks", "loaded"}, {"hit_ratio", "hits", ""}, {"steps", "steps", ""},
	{"step_decode_mean_s", "decode", "step"}, {"step_mixed_mean_s", "mixed", "step"},
}

// printValidation prints the errors of every run, the worst first and runs at
// saturation last, then what was aimed at.
func printValidation(w io.Writer, r *validate.Report) {
	fmt.Fprintf(w, "%s on %s: simulated over live less 1, in %%.\n", r.Name, r.Device)
	runs := r.WorstFirst()
	printErrors(w, runs)
	fmt.Fprintln(w, "! beyond its goal; steps: the model's time of the live run's own batches")
	printDisturbed(w, r, "  ")
	printGoals(w, runs, "  ")
	printQuiet(w, runs)
	printHost(w, runs)
	printOrder(w, r, "  ")
}

// printRepeat prints by how much second live runs differ from the first.
func printRepeat(w io.Writer, r *validate.Report) {
	fmt.Fprintf(w, "The live runs of %s over those of %s less 1, in %%.\n", r.Device, r.Name)
	runs := r.WorstFirst()
	printErrors(w, runs)
	fmt.Fprintln(w, "! beyond what is asked of a simulation; steps: how many")
	printGoals(w, runs, "  ")
}

// printErrors prints the errors of runs, in their order. A figure that none has is
// left out.
func printErrors(w io.Writer, runs []validate.ValidatedRun) {
	t := newTable(w, 10, 9, 8, 12, 11, 7, 6, 5, 3)
	top, below := table.Row{"run"}, table.Row{""}
	for _, s := range shown {
		top, below = append(top, s.title), append(below, s.unit)
	}
	t.AppendHeader(append(top, "goals"))
	t.AppendHeader(append(below, ""))
	for i := range runs {
		run := &runs[i]
		if i > 0 && run.Saturated != runs[i-1].Saturated {
			t.AppendSeparator()
		}
		missed := run.Misses()
		row := table.Row{run.Run}
		for _, s := range shown {
			cell := "" // a column of these is not shown
			if slices.ContainsFunc(runs, has(s.metric)) {
				cell = errorCell(run, s.metric, slices.Contains(missed, s.metric))
			}
			row = append(row, cell)
		}
		t.AppendRow(append(row, judged(run, missed)))
	}
	t.SetColumnConfigs(rightAligned(2, 1+len(shown)))
	t.Render()
}

// has tells runs that have a figure.
func has(metric string) func(validate.ValidatedRun) bool {
	return func(r validate.ValidatedRun) bool { _, ok := r.Of(metric); return ok }
}

// markdownValidation prints the live figures of every run and the errors of the
// simulation.
func markdownValidation(w io.Writer, r *validate.Report) {
	columns := []struct {
		metric, title string
		scale         float64
	}{
		{"ttft_mean_s", "TTFT mean, s", 1}, {"ttft_p99_s", "TTFT P99, s", 1},
		{"tbt_mean_s", "TBT mean, ms", 1e3}, {"tbt_p99_s", "TBT P99, ms", 1e3},
		{"throughput_tok_s", "tok/s", 1}, {"blocks_loaded_per_step", "blocks loaded/step", 1},
		{"step_decode_mean_s", "decode step, ms", 1e3}, {"step_mixed_mean_s", "mixed step, ms", 1e3},
	}
	header := []string{"run"}
	for _, c := range columns {
		header = append(header, c.title)
	}
	fmt.Fprint(w, markdownRow(append(header, "goals")...), "|-|",
		strings.Repeat("-:|", len(columns)), "-|\n")
	runs := r.WorstFirst()
	for i := range runs {
		run := &runs[i]
		missed := run.Misses()
		row := []string{run.Run}
		for _, col := range columns {
			c, ok := run.Of(col.metric)
			cell := "-"
			switch {
			case !ok || c.Live == 0 && c.Simulated == 0:
			case c.Error == nil:
				cell = "0, simulated " + digits(col.scale*c.Simulated)
			case slices.Contains(missed, col.metric) && !run.Saturated:
				cell = fmt.Sprintf("%s, **%+.1f %%**", digits(col.scale*c.Live), 100**c.Error)
			default:
				cell = fmt.Sprintf("%s, %+.1f %%", digits(col.scale*c.Live), 100**c.Error)
			}
			row = append(row, cell)
		}
		fmt.Fprint(w, markdownRow(append(row, judged(run, missed))...))
	}
	printDisturbed(w, r, "- ")
	printGoals(w, runs, "- ")
	printQuiet(w, runs)
	printHost(w, runs)
	printOrder(w, r, "- ")
}

func errorCell(run *validate.ValidatedRun, metric string, missed bool) string {
	c, ok := run.Of(metric)
	mark := " "
	if missed {
		mark = "!"
	}
	switch {
	case !ok || c.Live == 0 && c.Simulated == 0:
		return "- "
	case c.Error == nil:
		return "0 live" + mark
	}
	return fmt.Sprintf("%+.1f%s", 100**c.Error, mark)
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

// printDisturbed warns of live runs that say little, a line each.
func printDisturbed(w io.Writer, r *validate.Report, bullet string) {
	stalled := validate.Stalled(r.Runs)
	if len(stalled) > 0 {
		fmt.Fprintf(w, "\n%s stood still within steps, for longer than any work takes; remove these "+
			"folders and make them again, the longest first:\n", count(len(stalled), "live run"))
	}
	for _, s := range stalled {
		fmt.Fprintf(w, "%s%s, %s: %.3g s\n", bullet, s.Run.LiveFolder, s.Run.Run, s.Seconds)
	}
	disturbed, told := validate.Disturbed(r.Runs)
	if len(disturbed) == 0 {
		return
	}
	fmt.Fprintf(w, "\nThe host disturbed %d of %s with enough steps to judge: one in 20 of the "+
		"steps of the same work takes more than %g times their median.\n",
		len(disturbed), count(told, "live run"), validate.DisturbedAbove)
	fmt.Fprintln(w, "Remove these folders and make the runs again on a quiet machine, worst first:")
	for _, d := range disturbed {
		fmt.Fprintf(w, "%s%s, %s: %.2f times\n", bullet, d.Run.LiveFolder, d.Run.Run, d.Slow)
	}
}

// delayNear is how near a mean scheduling delay counts as near: no goal is on it.
const delayNear = 0.10

// printGoals says how many runs below saturation meet each goal, a line each. Runs in which a
// figure is 0, live and simulated, as blocks loaded are where nothing is offloaded, do not count as
// met. The scheduling delay has no goal, and is shown because service levels bound it.
func printGoals(w io.Writer, runs []validate.ValidatedRun, bullet string) {
	const delay = "queue_delay_mean_s"
	goals := validate.Goals()
	goals[delay] = delayNear
	below, met := 0, 0
	worst := map[string]float64{}
	within, of := map[string]int{}, map[string]int{}
	for i := range runs {
		run := &runs[i]
		if run.Saturated {
			continue
		}
		below++
		if len(run.Misses()) == 0 {
			met++
		}
		for m, goal := range goals {
			c, ok := run.Of(m)
			if !ok || c.Live == 0 && c.Simulated == 0 {
				continue
			}
			of[m]++
			if c.Error == nil {
				continue // it is 0 live
			}
			off := math.Abs(*c.Error)
			if worst[m] = max(worst[m], off); off <= goal {
				within[m]++
			}
		}
	}
	if below == 0 {
		fmt.Fprintf(w, "\nNo run is below saturation; the goals are for those.\n")
		return
	}
	fmt.Fprintf(w, "\n%d of %s below saturation meet every goal, %.0f %% are to:\n", met,
		count(below, "run"), 100*validate.GoalShare)
	for _, s := range shown {
		goal, ok := goals[s.metric]
		if !ok || of[s.metric] == 0 {
			continue
		}
		note := ""
		if s.metric == delay {
			note = "; no goal"
		}
		fmt.Fprintf(w, "%s%-24s within %2.0f %%: %d of %d, the worst at %.1f %%%s\n", bullet, s.metric,
			100*goal, within[s.metric], of[s.metric], 100*worst[s.metric], note)
	}
}

// printQuiet says what steps in which the machine stood still have to do with the runs below
// saturation that miss a goal.
func printQuiet(w io.Writer, runs []validate.ValidatedRun) {
	below, met, in, stood, steps := 0, 0, 0, 0, int64(0)
	for i := range runs {
		run := &runs[i]
		if run.Saturated {
			continue
		}
		below++
		if len(run.QuietMisses()) == 0 {
			met++
		}
		if run.Stepped {
			steps += run.Live.Steps
		}
		if n := run.StoodStill(); n > 0 {
			in++
			stood += n
		}
	}
	if stood > 0 {
		fmt.Fprintf(w, "\nThe machine stood still in %d of the live runs' %d steps, of %s: a decode of "+
			"the same work\ntook 1.25 times the median and more. Without that, %d of %d meet every goal.\n",
			stood, steps, count(in, "run"), met, below)
	}
}

// printOrder says whether the simulation puts the systems in the order that the
// live runs have.
func printOrder(w io.Writer, r *validate.Report, bullet string) {
	swaps, pairs := validate.Swaps(r.Runs)
	if pairs == 0 {
		return
	}
	if len(swaps) == 0 {
		fmt.Fprintf(w, "\nThe order of the systems is the same: in all %d pairs at one load, by mean "+
			"TTFT and by throughput.\n", pairs)
		return
	}
	fmt.Fprintf(w, "\nThe order of the systems differs in %d of %d pairs at one load:\n",
		len(swaps), pairs)
	for _, s := range swaps {
		var what strings.Builder
		for _, run := range []*validate.ValidatedRun{s.First, s.Second} {
			c, _ := run.Of(s.Metric)
			fmt.Fprintf(&what, " %s %s live, %s simulated;", run.Run, digits(c.Live), digits(c.Simulated))
		}
		fmt.Fprintf(w, "%s%s:%s\n", bullet, s.Metric, strings.TrimSuffix(what.String(), ";"))
	}
}

// How far the host's part of decode steps may be from what is simulated before a table says so, and
// which share of their linears it is at least: some tenths of a millisecond are of splitting a step
// into its phases.
const hostOffAbove, hostShareAbove = 0.15, 0.1

// printHost says where the host's part of decode steps is not what is simulated.
func printHost(w io.Writer, runs []validate.ValidatedRun) {
	of, off := 0, []float64{}
	for i := range runs {
		host, ok := runs[i].Of("phase_decode_host_s")
		linears, known := runs[i].Of("phase_decode_linears_s")
		if !ok || !known || host.Simulated < hostShareAbove*linears.Simulated {
			continue
		}
		of++
		if ratio := host.Live / host.Simulated; math.Abs(ratio-1) > hostOffAbove {
			off = append(off, ratio)
		}
	}
	if len(off) == 0 {
		return
	}
	times := fmt.Sprintf("%.2f", slices.Min(off))
	if most := fmt.Sprintf("%.2f", slices.Max(off)); most != times {
		times += " to " + most
	}
	fmt.Fprintf(w, "\nIn %d of %s the host's part of a decode takes %s times what is simulated:\n"+
		"hosts of one card differ; `sparseserve calibrate --host` measures this one.\n",
		len(off), count(of, "run"), times)
}
