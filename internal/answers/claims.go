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

const aboutVerdicts = "Pass: the whole 95 % interval is within 20 % of the paper's number, or on " +
	"the right side of its bound. Fail: none of it is. Undecided: a part of it is."

// classNames are the printed names of classes.
var classNames = map[papers.Class]string{papers.Independent: "independent evidence",
	papers.Anchor: "anchors", papers.Construction: "true by construction",
	papers.ChosenAfter: "parameters chosen after a failure", papers.Product: "products of others"}

// Claims returns the document on claims judged by our numbers: one table per class, and the reasons
// of failures.
func Claims(outcomes []papers.Outcome) *doc.Doc {
	d := &doc.Doc{Title: "Claims of the papers"}
	d.Tables, d.Answers = claimTables("ours", outcomes)
	addTable(d, failures(outcomes))
	return d
}

// NullClaims returns the document on claims judged by a model without any mechanism.
func NullClaims(outcomes []papers.Outcome) *doc.Doc {
	tables, lines := claimTables("null", outcomes)
	for i := range tables {
		tables[i].Folded = true
		tables[i].Legend = append([]string{lines[i]}, tables[i].Legend...)
	}
	return &doc.Doc{Title: "Claims of the papers that no mechanism meets",
		Tables: append([]doc.Table{passing([]string{""}, outcomes)}, tables...)}
}

// claimTables returns one table per class, with one row per number, and a line that counts the
// numbers that pass.
func claimTables(model string, outcomes []papers.Outcome) (tables []doc.Table, lines []string) {
	for _, class := range papers.Classes() {
		own := ofClass(outcomes, class)
		if len(own) == 0 {
			continue
		}
		name := classNames[class]
		t := doc.Table{Title: capital(name), Columns: doc.Columns("claim", "of what", "where", ">paper",
			">"+model, ">95 % interval", ">deviation", "verdict")}
		for i := range own {
			v := &own[i]
			what, at := v.Text, v.Where
			if i > 0 && own[i-1].Text == v.Text {
				what = fmt.Sprintf("the same, number %d", v.Index+1)
			}
			if v.Paper != "sparseserve" {
				at = v.Paper + ", " + at
			}
			ours, interval, deviation, verdict := outcomeCells(v)
			t.Add(claimName(v), what, at, claimed(v), ours, interval, deviation, verdict)
		}
		tables, lines = append(tables, t), append(lines, tally(name, own))
	}
	if n := len(tables); n > 0 {
		tables[n-1].Legend = []string{aboutVerdicts}
	}
	return tables, lines
}

// failures lists the notes of claims that fail, each once.
func failures(outcomes []papers.Outcome) doc.Table {
	t := doc.Table{Title: "Where they do not pass", Columns: doc.Columns("claim", "why")}
	last := ""
	for i := range outcomes {
		v := &outcomes[i]
		if v.Measured() && v.Verdict != papers.Pass && v.ID != last && v.Note != "" {
			t.Add(v.ID, v.Note)
			last = v.ID
		}
	}
	return t
}

// tally counts the numbers of a class by verdict.
func tally(class string, own []papers.Outcome) string {
	passed := withVerdict(own, papers.Pass)
	line := fmt.Sprintf("%s: %d of %d pass, %d undecided, %d fail", class, passed, len(own),
		withVerdict(own, papers.Undecided), withVerdict(own, papers.Fail))
	if n := near(own); n != passed {
		line += fmt.Sprintf("; %d in the band whatever their interval", n)
	}
	if n := withVerdict(own, ""); n > 0 {
		line += fmt.Sprintf(", %d not measured", n)
	}
	return line
}

// passing counts the passing numbers: one row per paper and model, one column per class.
func passing(names []string, models ...[]papers.Outcome) doc.Table {
	t := doc.Table{Columns: doc.Columns("")}
	for _, class := range papers.Classes() {
		t.Columns = append(t.Columns, doc.Columns(">"+classNames[class])...)
	}
	for _, paper := range distinct(models[0], func(v *papers.Outcome) string { return v.Paper }) {
		for i, outcomes := range models {
			of := where(outcomes, func(v *papers.Outcome) bool { return v.Paper == paper })
			cells := []any{strings.TrimSpace(paper + " " + names[i])}
			for _, class := range papers.Classes() {
				own, cell := ofClass(of, class), doc.None()
				if len(own) > 0 {
					passed := withVerdict(own, papers.Pass)
					cell = doc.As(float64(passed), fmt.Sprintf("%d of %d", passed, len(own)))
				}
				cells = append(cells, cell)
			}
			t.Add(cells...)
		}
	}
	return t
}

func ofClass(outcomes []papers.Outcome, class papers.Class) []papers.Outcome {
	return where(outcomes, func(v *papers.Outcome) bool { return v.Class == class })
}

func withVerdict(outcomes []papers.Outcome, verdict papers.Verdict) int {
	return len(where(outcomes, func(v *papers.Outcome) bool { return v.Verdict == verdict }))
}

// near counts the numbers that would pass without an interval.
func near(own []papers.Outcome) int { return len(where(own, (*papers.Outcome).Near)) }

// claimName distinguishes the numbers of one claim.
func claimName(v *papers.Outcome) string {
	if v.Index > 0 {
		return fmt.Sprintf("%s [%d]", v.ID, v.Index+1)
	}
	return v.ID
}

func claimed(v *papers.Outcome) doc.Cell {
	sign := map[string]string{"below": "< ", "above": "> "}[v.Bound]
	return doc.As(v.Value, sign+claimNumber(v, v.Value))
}

// outcomeCells returns our number, its interval, its deviation and its verdict.
func outcomeCells(v *papers.Outcome) (ours doc.Cell, interval string, deviation doc.Cell,
	verdict string) {
	interval, deviation, verdict = "-", doc.None(), string(v.Verdict)
	if !v.Measured() {
		return doc.None(), interval, deviation, strings.TrimPrefix(v.Note, "not yet measured: ")
	}
	if *v.Low != *v.High {
		interval = claimNumber(v, *v.Low) + " to " + claimNumber(v, *v.High)
	}
	if v.Bound == "" {
		deviation = doc.Fixed(100**v.Deviation, "%+.0f %%")
	}
	if v.Verdict == papers.Fail {
		verdict = "FAIL"
	}
	return doc.As(*v.Ours, claimNumber(v, *v.Ours)), interval, deviation, verdict
}

// oursJudged returns our number with its verdict.
func oursJudged(v *papers.Outcome) string {
	if !v.Measured() {
		return "-"
	}
	ours, _, _, verdict := outcomeCells(v)
	return ours.String() + " " + verdict
}

// claimNumber formats a number of a claim in its unit.
func claimNumber(v *papers.Outcome, x float64) string {
	switch v.Kind {
	case "share":
		return fmt.Sprintf("%.1f %%", 100*x)
	case "bandwidth":
		return fmt.Sprintf("%.1f GB/s", x)
	case "points":
		return fmt.Sprintf("%.2f points", x)
	case "seconds":
		return digits(x) + " s"
	}
	if math.Abs(x) >= 100 {
		return fmt.Sprintf("%.0fx", x)
	}
	return fmt.Sprintf("%.2fx", x)
}

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
