package answers

import (
	"fmt"
	"path/filepath"

	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/stats"
	"github.com/sparseserve/sparseserve/traces"
)

// Trace returns the description of a trace: quantiles of lengths and gaps, and possible prefix
// cache hits.
func Trace(t *traces.Description) *doc.Doc {
	d := &doc.Doc{Title: t.Path + ": trace"}
	lead := fmt.Sprintf("%s: %s, %s", t.Path, t.Format, Count(t.Requests, "request"))
	if t.Gap != nil {
		lead += fmt.Sprintf(" over %s s, %s requests/s, gaps vary by %s of their mean",
			stats.Digits(t.Seconds), stats.Digits(t.Rate), stats.Digits(t.GapCV))
	}
	d.Lead = []string{lead}
	lengths := doc.Table{Title: "Lengths", Columns: doc.Columns("", ">requests", ">mean", ">min",
		">P50", ">P95", ">P99", ">max")}
	further := doc.Table{Title: "Further quantiles", Columns: doc.Columns("", ">P1", ">P5", ">P25",
		">P75")}
	add := func(name string, n int, q traces.Quantiles) {
		lengths.Add(name, n, q.Mean, q.Min, q.P50, q.P95, q.P99, q.Max)
		further.Add(name, q.P1, q.P5, q.P25, q.P75)
	}
	add("prompt tokens", t.Requests, t.Prompt)
	add("output tokens", t.Requests, t.Output)
	if t.Gap != nil {
		add("gap, s", t.Requests-1, *t.Gap)
	}
	for _, s := range t.Sets {
		lengths.Rule()
		further.Rule()
		add(s.Set+" prompt", s.Requests, s.Prompt)
		add(s.Set+" output", s.Requests, s.Output)
	}
	d.Tables = []doc.Table{lengths, further}
	if t.Prefix != nil {
		d.Tables = append(d.Tables, reused(t.Prefix))
		d.Figures = append(d.Figures, byCapacity(filepath.Base(t.Path), t.Prefix))
	}
	d.Warnings = Warnings(t.Warnings, 1)
	return d
}

// readTrace builds the document of a trace description.
func readTrace(dir string) (*doc.Doc, error) {
	var t traces.Description
	if err := readJSON(dir, DescriptionFile, &t); err != nil {
		return nil, err
	}
	if r := t.Prefix; r != nil && (len(r.Curve[0]) != len(r.Curve[1]) || len(r.Curve[0]) == 0) {
		return nil, fmt.Errorf("%s: prefix.curve: %d capacities of %d shares",
			filepath.Join(dir, DescriptionFile), len(r.Curve[0]), len(r.Curve[1]))
	}
	return Trace(&t), nil
}

// DescriptionFile is the file with the description of a trace.
const DescriptionFile = "description.json"

// byCapacity draws the share of prompt tokens that hit a prefix cache, over its capacity.
func byCapacity(trace string, r *traces.Reuse) doc.Figure {
	line := doc.Line{Name: "LRU", Color: "#0072b2", Bare: true}
	for i, gib := range r.Curve[0] {
		line.Points = append(line.Points, doc.Point{X: gib, Y: 100 * r.Curve[1][i]})
	}
	some := doc.Line{Name: "LRU, as labelled", Color: "#0072b2", Dots: true}
	best := doc.Line{Name: "Belady's optimum", Color: "#c62f1f", Dots: true}
	most := r.Curve[0][len(r.Curve[0])-1] * 1.15
	for _, p := range r.Capacities {
		if p.GiB < r.Curve[0][0] || p.GiB > most {
			continue
		}
		some.Points = append(some.Points, doc.Point{X: p.GiB, Y: 100 * p.Share,
			Note: fmt.Sprintf("%g GiB: %.1f %%", p.GiB, 100*p.Share)})
		if p.Optimum != nil && r.PromptTokens > 0 {
			best.Points = append(best.Points, doc.Point{X: p.GiB,
				Y: 100 * float64(*p.Optimum) / float64(r.PromptTokens)})
		}
	}
	c := &doc.Chart{X: "Capacity (GiB of KV)", Y: "Prompt Tokens Found (%)",
		LogX: true, Levels: []float64{100 * r.Unbounded.Share},
		Lines: drawnLines([]doc.Line{line, some, best})}
	return doc.Figure{Name: "prefix", Title: "Prefix cache of " + trace, Charts: []*doc.Chart{c},
		Caption: fmt.Sprintf("Prefix cache of %s: %s, %.4g KiB of KV a token, blocks of %d tokens; "+
			"requests in sequence; dashed: without bound %.1f %%, in %.4g GiB", trace, r.Model,
			float64(r.TokenBytes)/1024, r.BlockTokens, 100*r.Unbounded.Share, r.Unbounded.GiB)}
}

// reused returns the table of possible prefix cache hits.
func reused(r *traces.Reuse) doc.Table {
	t := doc.Table{Title: "Prefix caches", Note: fmt.Sprintf("LRU, blocks of %d tokens, %s of "+
		"%s KiB of KV a token; requests in sequence", r.BlockTokens, r.Model,
		stats.Digits(float64(r.TokenBytes)/1024)),
		Columns: doc.Columns("", ">size|GiB", ">found|prompt tokens", ">share|% of all",
			">Belady|% of all")}
	percent := func(tokens *int64) doc.Cell {
		if tokens == nil {
			return doc.None()
		}
		return doc.Number(100 * float64(*tokens) / float64(max(1, r.PromptTokens)))
	}
	for _, c := range r.Capacities {
		t.Add("bounded", c.GiB, int(c.Tokens), 100*c.Share, percent(c.Optimum))
	}
	u := &r.Unbounded
	t.Add("without bound", u.GiB, int(u.Tokens), 100*u.Share, percent(&u.Tokens))
	return t
}
