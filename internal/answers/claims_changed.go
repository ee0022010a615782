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
	t := changedTable([]string{"exchanged"}, [][]papers.Outcome{base, swapped})
	t.Title, t.Folded = "Claims", true
	t.Legend = []string{"Exchanged: LWM-7B has Llama3-8B's output_scale, Llama3-8B that of LWM-7B. " +
		"Three seeds of 100 requests, 4 groups of heads, goodput to a quarter; without intervals."}
	return &doc.Doc{Title: "Claims of the papers with exchanged output lengths",
		Tables: []doc.Table{passing([]string{"ours", "exchanged"}, base, swapped), t}}
}

// SearchedClaims returns the document on claims under changes; models begins with ours.
func SearchedClaims(changes []string, models [][]papers.Outcome) *doc.Doc {
	return &doc.Doc{Title: "Claims of the papers under changes",
		Tables: []doc.Table{changedTable(changes, models)}}
}

// changedTable has one row per number that some change was run for, and one column per change.
func changedTable(changes []string, models [][]papers.Outcome) doc.Table {
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
	return t
}

// leastMove is the relative change of a number that counts as a move.
const leastMove = 0.05

// SensitiveClaims returns the document on the sensitivity of claims to each tuned parameter: how
// many numbers change by leastMove, or have another verdict. models has ours, and then two for each
// parameter, at half and at double its value.
func SensitiveClaims(tuned []papers.Tuned, models [][]papers.Outcome) *doc.Doc {
	t := doc.Table{Columns: doc.Columns("parameter", "value", ">numbers it moves", "why this value")}
	for j := range tuned {
		moves := 0
		for i := range models[0] {
			base := &models[0][i]
			if base.Measured() && slices.ContainsFunc(models[1+2*j:3+2*j], func(m []papers.Outcome) bool {
				change := *m[i].Ours / *base.Ours - 1
				return !(math.Abs(change) <= leastMove) || m[i].Verdict != base.Verdict
			}) {
				moves++
			}
		}
		t.Add(tuned[j].Name, tunedValue(&tuned[j]), moves, tuned[j].Reason)
	}
	return &doc.Doc{Title: "Claims of the papers by tuned parameter", Tables: []doc.Table{t}}
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
