package answers

import (
	"fmt"
	"strconv"

	"github.com/sparseserve/sparseserve/experiments/patterns"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/sim/pattern"
)

// contexts are the prompt lengths, in tokens, for which a description shows the density.
var contexts = []int{30_000, 100_000, 300_000, 1_000_000}

// Patterns describes heads by their patterns: the share of dense causal attention that each
// computes.
func Patterns(groups []pattern.Group) *doc.Doc {
	t := doc.Table{Title: "Patterns", Columns: doc.Columns("pattern", ">heads"),
		Legend: []string{"% of dense causal attention, at prompts of the lengths in the head"}}
	for _, n := range contexts {
		t.Columns = append(t.Columns, doc.Columns(fmt.Sprintf(">%dK|%%", n/1000))...)
	}
	all, sums := 0.0, make([]float64, len(contexts))
	for _, g := range groups {
		cells := []any{g.Head.String(), heads(g.Heads)}
		for i, n := range contexts {
			density := g.Density(n)
			sums[i] += g.Heads * density
			cells = append(cells, score(100*density))
		}
		all += g.Heads
		t.Add(cells...)
	}
	cells := []any{"all", heads(all)}
	for _, sum := range sums {
		cells = append(cells, score(100*sum/all))
	}
	t.Rule()
	t.Add(cells...)
	return &doc.Doc{Title: "Patterns of heads", Tables: []doc.Table{t}}
}

// PatternSpace lists the candidates of a search, with the time of each kernel.
func PatternSpace(gpu *hw.Profile, model *hw.Model, tokens int, space []pattern.Head) doc.Table {
	t := doc.Table{Title: "Candidates", Columns: doc.Columns("candidate", ">kernel|us",
		">of dense|%")}
	for _, h := range space {
		t.Add(h.String(), 1e6*patterns.Cost(gpu, model, h, tokens), score(100*h.Density(tokens)))
	}
	return t
}

// FoundPatterns counts the heads of a model by the pattern found for them.
func FoundPatterns(groups []pattern.Group) doc.Table {
	t := doc.Table{Title: "Found", Columns: doc.Columns("found", ">heads")}
	for _, g := range groups {
		t.Add(g.Head.String(), heads(g.Heads))
	}
	return t
}

// heads formats a number of heads; in a published mix it may be a fraction.
func heads(n float64) doc.Cell { return doc.As(n, strconv.FormatFloat(n, 'f', -1, 64)) }

// score formats a value in % with one decimal.
func score(v float64) doc.Cell { return doc.As(v, strconv.FormatFloat(v, 'f', 1, 64)) }
