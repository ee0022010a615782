package answers

import (
	"fmt"

	"github.com/sparseserve/sparseserve/experiments/validate"
	"github.com/sparseserve/sparseserve/internal/doc"
)

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
				cells = append(cells, doc.As(100*v, fmt.Sprintf("%+.2f", 100*v)))
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
