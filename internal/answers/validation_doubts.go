package answers

import (
	"fmt"
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/experiments/validate"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/warn"
)

// doubtful warns of missed goals, of live runs with little evidence, and of warnings of the
// simulations. A table lists the folders of such live runs.
func doubtful(r *validate.Report) (warnings []resultWarning, folders []doc.Table) {
	add := func(kind warn.Kind, format string, args ...any) {
		warnings = append(warnings, said([]warn.Warning{warn.New(kind, format, args...)}, "")...)
	}
	met, below := metOf(r.Runs)
	if float64(met) < validate.GoalShare*float64(len(below)) {
		add(warn.GoalsMissed, "fewer runs than %.0f %% meet every goal", 100*validate.GoalShare)
	}
	if disturbed, told := validate.Disturbed(r.Runs); len(disturbed) > 0 {
		add(warn.Disturbed, "The host disturbed %d of %s with enough steps to judge: one in 20 of the "+
			"steps of the same work takes more than %g times their median. Remove these folders and make "+
			"the runs again on a quiet machine, worst first.", len(disturbed), Count(told, "live run"),
			validate.DisturbedAbove)
		t := doc.Table{Title: "Live runs that the host disturbed, worst first",
			Columns: doc.Columns("folder", "run", ">times the median")}
		for _, d := range disturbed {
			t.Add(d.Run.LiveFolder, d.Run.Run, doc.As(d.Slow, fmt.Sprintf("%.2f", d.Slow)))
		}
		folders = append(folders, t)
	}
	for i := range r.Runs {
		warnings = append(warnings, said(r.Runs[i].Simulated.Warnings, r.Runs[i].Run)...)
	}
	return warnings, folders
}

// hostOffAbove is the relative error of the host's part of decode steps above which an answer
// reports it. hostShareAbove is the smallest host part relative to the linears: some tenths of a
// millisecond come from splitting a step into phases.
const hostOffAbove, hostShareAbove = 0.15, 0.1

// slowHost reports runs in which the host's part of decode steps differs from the simulation.
func slowHost(runs []validate.ValidatedRun) []string {
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
		return nil
	}
	times := fmt.Sprintf("%.2f", slices.Min(off))
	if most := fmt.Sprintf("%.2f", slices.Max(off)); most != times {
		times += " to " + most
	}
	return []string{fmt.Sprintf("In %d of %s the host's part of a decode takes %s times what is "+
		"simulated: hosts of one card differ; `sparseserve calibrate host` fits this one to a live run.",
		len(off), Count(of, "run"), times)}
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
