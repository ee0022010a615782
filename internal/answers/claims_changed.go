package answers

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/papers"
	"github.com/sparseserve/sparseserve/internal/doc"
)

// SwappedClaims returns the document on claims with original and with swapped model parameters.
func SwappedClaims(base, swapped []papers.Outcome) *doc.Doc {
	t := doc.Table{Title: "Claims", Folded: true, Columns: doc.Columns("claim", ">paper", ">ours", "",
		">exchanged", "", "class")}
	for i := range base {
		b, s := &base[i], &swapped[i]
		t.Add(claimName(b), claimed(b), ours(b), verdict(b), ours(s), verdict(s), string(b.Class))
	}
	own := tallies(base)
	for i, line := range tallies(swapped) {
		_, without, _ := strings.Cut(own[i], ": ")
		t.Legend = append(t.Legend, line+"; ours: "+without)
	}
	t.Legend = append(t.Legend, "Exchanged: LWM-7B has Llama3-8B's output_scale, Llama3-8B that of "+
		"LWM-7B. Three seeds of 100 requests, 4 groups of heads, goodput to a quarter; without "+
		"intervals.")
	return &doc.Doc{Title: "Claims of the papers with exchanged output lengths",
		Tables: []doc.Table{passing([]string{"ours", "exchanged"}, base, swapped), t}}
}

// SearchedClaims returns the document on claims under changes: one row per number that some change
// was run for, and one column per change; the first change is none.
func SearchedClaims(changes []string, models [][]papers.Outcome) *doc.Doc {
	t := doc.Table{Columns: doc.Columns("claim", ">paper", ">ours")}
	for _, change := range changes {
		t.Columns = append(t.Columns, doc.Column{Name: change, Number: true})
	}
	for i := range models[0] {
		measured := func(own []papers.Outcome) bool { return own[i].Measured() }
		if !slices.ContainsFunc(models[1:], measured) {
			continue
		}
		cells := []any{claimName(&models[0][i]), claimed(&models[0][i])}
		for _, own := range models {
			cells = append(cells, oursJudged(&own[i]))
		}
		t.Add(cells...)
	}
	cells := []any{"in the band; ours of the same", "", ""}
	for _, own := range models[1:] {
		var both [2][]papers.Outcome
		for i := range own {
			if own[i].Measured() {
				both[0], both[1] = append(both[0], own[i]), append(both[1], models[0][i])
			}
		}
		cells = append(cells, fmt.Sprintf("%d of %d; %d", near(both[0]), len(both[0]), near(both[1])))
	}
	t.Rule()
	t.Add(cells...)
	return &doc.Doc{Title: "Claims of the papers under changes", Tables: []doc.Table{t}}
}

// Moves are the numbers of claims with a tuned parameter at half and at double its value.
type Moves struct {
	Tuned        papers.Tuned
	Half, Double []papers.Outcome
}

// leastMove is the relative change of a number that counts as a move.
const leastMove = 0.05

// SensitiveClaims returns the document on the sensitivity of claims to each tuned parameter.
func SensitiveClaims(base []papers.Outcome, moved []Moves) *doc.Doc {
	t := doc.Table{Columns: doc.Columns("parameter", "value", ">numbers it moves", "why this value")}
	which := doc.Table{Title: "Numbers that move", Folded: true,
		Columns: doc.Columns("claim", ">paper", ">ours", "parameter", ">at half", ">at double"),
		Legend: []string{"Change of our number with the parameter at half and at double, left out " +
			"below 5 %; pass or FAIL where the outcome changes. Three seeds of 100 requests, 4 groups of " +
			"heads; goodput is found to a quarter, so its ratios move in steps of up to as much."}}
	moves := make([]int, len(moved))
	for i := range base {
		if !base[i].Measured() {
			continue
		}
		head := []any{claimName(&base[i]), claimed(&base[i]), oursJudged(&base[i])}
		still := true
		for j := range moved {
			if cells := moved[j].cells(&base[i], i); cells != nil {
				moves[j]++
				still = false
				which.Add(slices.Concat(head, cells)...)
			}
		}
		if still {
			which.Add(append(head, "none")...)
		}
	}
	for j := range moved {
		p := &moved[j].Tuned
		t.Add(p.Name, tunedValue(p), moves[j], p.Reason)
	}
	return &doc.Doc{Title: "Claims of the papers by tuned parameter", Tables: []doc.Table{t, which}}
}

// cells describes the move of number i; nil if it does not move.
func (m *Moves) cells(base *papers.Outcome, i int) []any {
	cells := []any{m.Tuned.Name}
	moves := false
	for _, v := range []*papers.Outcome{&m.Half[i], &m.Double[i]} {
		change := *v.Ours / *base.Ours - 1
		text := fmt.Sprintf("%+.0f %%", 100*change)
		switch {
		case v.Verdict == base.Verdict:
		case v.Verdict == papers.Pass:
			text += " pass"
		default:
			text += " FAIL"
		}
		moves = moves || !(math.Abs(change) <= leastMove) || v.Verdict != base.Verdict
		cells = append(cells, doc.As(100*change, text))
	}
	if !moves {
		return nil
	}
	return cells
}

// tunedValue formats a tuned parameter's value, per model if the values differ.
func tunedValue(f *papers.Tuned) string {
	if f.Values == nil {
		return strings.TrimSpace(fmt.Sprintf("%g %s", f.Value, f.Unit))
	}
	var texts []string
	for _, model := range slices.Sorted(maps.Keys(f.Values)) {
		texts = append(texts, fmt.Sprintf("%g for %s", f.Values[model], model))
	}
	return strings.Join(texts, ", ")
}
