package answers

import (
	"fmt"
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
	d := &doc.Doc{Title: "Claims of the papers", Tables: claimTables("ours", outcomes),
		Answers: tallies(outcomes)}
	addTable(d, failures(outcomes))
	return d
}

// NullClaims returns the document on claims judged by a model without any mechanism.
func NullClaims(outcomes []papers.Outcome) *doc.Doc {
	tables, lines := claimTables("null", outcomes), tallies(outcomes)
	for i := range tables {
		tables[i].Folded = true
		tables[i].Legend = append([]string{lines[i]}, tables[i].Legend...)
	}
	return &doc.Doc{Title: "Claims of the papers that no mechanism meets",
		Tables: append([]doc.Table{passing([]string{""}, outcomes)}, tables...)}
}

// claimTables returns one table per class, with one row per number.
func claimTables(model string, outcomes []papers.Outcome) (tables []doc.Table) {
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
			t.Add(claimName(v), what, at, claimed(v), ours(v), interval(v), deviation(v), verdict(v))
		}
		tables = append(tables, t)
	}
	if n := len(tables); n > 0 {
		tables[n-1].Legend = []string{aboutVerdicts}
	}
	return tables
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

// tallies counts the passing numbers, one line per class.
func tallies(outcomes []papers.Outcome) (lines []string) {
	for _, class := range papers.Classes() {
		own := ofClass(outcomes, class)
		if len(own) == 0 {
			continue
		}
		passed := withVerdict(own, papers.Pass)
		line := fmt.Sprintf("%s: %d of %d pass, %d undecided, %d fail", classNames[class], passed,
			len(own), withVerdict(own, papers.Undecided), withVerdict(own, papers.Fail))
		if n := near(own); n != passed {
			line += fmt.Sprintf("; %d in the band whatever their interval", n)
		}
		if n := withVerdict(own, ""); n > 0 {
			line += fmt.Sprintf(", %d not measured", n)
		}
		lines = append(lines, line)
	}
	return lines
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
