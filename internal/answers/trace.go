package answers

import (
	"fmt"

	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/stats"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/traces"
)

// Trace is the answer of describing a trace: quantiles of lengths and gaps, and what prefix caches
// would find.
func Trace(t *traces.Description) *doc.Doc {
	d := &doc.Doc{Title: t.Path + ": trace"}
	lead := fmt.Sprintf("%s: %s, %s", t.Path, t.Format, Count(t.Requests, "request"))
	if t.Gap != nil {
		lead += fmt.Sprintf(" over %s s, %s requests/s, gaps vary by %s of their mean",
			stats.Digits(t.Seconds), stats.Digits(t.Rate), stats.Digits(t.GapCV))
	}
	d.Lead = []string{lead}
	lengths := doc.Table{Title: "Lengths", Columns: doc.Columns("", ">requests", ">mean", ">min",
		">P1", ">P5", ">P25", ">P50", ">P75", ">P95", ">P99", ">max")}
	add := func(name string, n int, q traces.Quantiles) {
		lengths.Add(name, n, q.Mean, q.Min, q.P1, q.P5, q.P25, q.P50, q.P75, q.P95, q.P99, q.Max)
	}
	add("prompt tokens", t.Requests, t.Prompt)
	add("output tokens", t.Requests, t.Output)
	if t.Gap != nil {
		add("gap, s", t.Requests-1, *t.Gap)
	}
	for _, s := range t.Sets {
		lengths.Rule()
		add(s.Set+" prompt", s.Requests, s.Prompt)
		add(s.Set+" output", s.Requests, s.Output)
	}
	d.Tables = append(d.Tables, lengths)
	if t.Prefix != nil {
		d.Tables = append(d.Tables, reused(t.Prefix))
	}
	var said []warn.Said
	for _, w := range t.Warnings {
		said = append(said, warn.Said{Warning: w})
	}
	d.Warnings = Warnings(said, 1)
	return d
}

// reused is what prefix caches would find of the prompts.
func reused(r *traces.Reuse) doc.Table {
	t := doc.Table{Title: "Prefix caches", Note: fmt.Sprintf("Prefix caches under LRU, blocks of %d "+
		"tokens, %s of %s KiB of KV a token; requests one after another:", r.BlockTokens, r.Model,
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
