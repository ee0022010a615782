package answers

import (
	"fmt"

	"github.com/sparseserve/sparseserve/experiments/validate"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// Comparison returns the document that compares a real server's record with its simulation: one
// table for all requests, and one for each stage of the load.
func Comparison(r *validate.ReplayReport) *doc.Doc {
	d := &doc.Doc{Title: r.Name + ": measured and simulated", Lead: comparedRequests(r)}
	d.Warnings = (&Runs{Sums: []metrics.Summary{r.Summary}}).warnings()
	stage := ""
	for i := range r.Comparisons {
		c := &r.Comparisons[i]
		if c.Stage != stage {
			stage = c.Stage
			d.Tables = append(d.Tables, doc.Table{Title: "Stage: " + stage,
				Note:    Count(c.Requests, "request") + ".",
				Columns: doc.Columns("figure", ">measured", ">simulated", ">error, %")})
		}
		t := &d.Tables[len(d.Tables)-1]
		m := compared(c.Metric)
		name := doc.Text(inRow(&m))
		if c.Thin() {
			name.Mark = " ~"
			t.Legend = []string{fmt.Sprintf("~ P99 of fewer than %d requests: about their largest",
				validate.FewForP99)}
		}
		t.Add(name, m.Scale*c.Measured, m.Scale*c.Simulated, off(c.Error))
	}
	all := &d.Tables[0] // of validate.AllStages
	all.Title = "All requests"
	all.Note = Count(r.Comparisons[0].Requests, "request") + ". Error: simulated over measured less " +
		"1. Mean and percentiles are over requests, TPOT is a request's mean time between tokens."
	return d
}

// comparedRequests describes the compared requests and their prefix cache hits.
func comparedRequests(r *validate.ReplayReport) []string {
	lead := []string{fmt.Sprintf("%s (%s), %s over %s s, against %s simulated: %s on %s%s, engine %s.",
		r.File, r.Format, Count(r.Recorded, "request"), digits(r.SpanS), r.Summary.System,
		r.Summary.Model, r.Summary.GPU, r.Changed, r.Engine)}
	lead = append(lead, r.Notes...)
	for _, left := range []struct {
		n   int
		why string
	}{
		{r.Failed, "failed in the record: left out of both."},
		{r.Skipped, fmt.Sprintf("arrived before %g s: simulated, but in no figure.", r.SkipS)},
		{r.Rejected, "rejected by the simulated server: left out of both. Do the model's context and " +
			"the room for KV match the server's?"},
	} {
		if left.n > 0 {
			lead = append(lead, Count(left.n, "request")+" "+left.why)
		}
	}
	if p := r.Summary.PrefixCache; p != nil {
		lead = append(lead, fmt.Sprintf("Prefix cache: the record identifies shared prompt content; the "+
			"simulated cache has %.1f %% of their tokens (--prefix-hit SHARE sets another share).",
			100*p.HitShare))
	}
	if r.Prefix != nil {
		lead = append(lead, fmt.Sprintf("Prefix cache: %s.", r.Prefix))
	}
	if r.Cold != "" {
		lead = append(lead, "Prefix cache: "+r.Cold+".")
	}
	return lead
}

// readComparison builds the document of a comparison's folder.
func readComparison(dir string) (*doc.Doc, error) {
	r, err := validate.ReadReplay(dir)
	if err != nil {
		return nil, err
	}
	p := Comparison(r)
	if p.Figures, err = Requests(dir, r); err != nil {
		return nil, err
	}
	return onMachines(p, []string{dir}, nil)
}
