package cli

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/sparseserve/sparseserve/experiments/papers"
)

// moves is what the claims come to with a tuned parameter at half and at
// double.
type moves struct {
	tuned        papers.Tuned
	half, double []papers.Outcome
}

// leastMove is the relative change of a number that counts as a move.
const leastMove = 0.05

// printSensitivity prints a row for each measured number: as it is, and how it
// moves with each tuned parameter.
func printSensitivity(w io.Writer, base []papers.Outcome, moved []moves) {
	t := newTable(w)
	header := table.Row{"claim", "paper", "ours"}
	for _, m := range moved {
		header = append(header, m.tuned.Name)
	}
	t.AppendHeader(header)
	for i := range base {
		if !base[i].Measured() {
			continue
		}
		row := table.Row{claimName(&base[i]), claimed(&base[i]), ours(&base[i]) + " " + outcome(&base[i])}
		for _, m := range moved {
			row = append(row, m.cell(&base[i], i, "pass", "FAIL"))
		}
		t.AppendRow(row)
	}
	t.SetColumnConfigs(rightAligned(2, 3+len(moved)))
	t.Render()
	fmt.Fprintln(w, aboutMoves)
}

const aboutMoves = "Change of our number with the parameter at half / at double, blank below 5 " +
	"%; pass or FAIL where the outcome changes. Three seeds of 100 requests, 4 groups of heads; " +
	"goodput is found to a quarter, so its ratios move in steps of up to as much."

// sensitivityMarkdown is the table of a study: the parameters, how many numbers each moves,
// and why they are what they are. The command itself prints which.
func sensitivityMarkdown(base []papers.Outcome, moved []moves) string {
	var b strings.Builder
	b.WriteString("| parameter | value | numbers it moves | why this value |\n|-|-|-:|-|\n")
	for _, m := range moved {
		n := 0
		for i := range base {
			if base[i].Measured() && m.cell(&base[i], i, "", "") != "" {
				n++
			}
		}
		b.WriteString(markdownRow("`"+m.tuned.Name+"`", tunedValue(&m.tuned), strconv.Itoa(n),
			m.tuned.Reason))
	}
	return b.String()
}

// cell says how number i moves, with the words for an outcome that is not that
// of base.
func (m *moves) cell(base *papers.Outcome, i int, pass, fail string) string {
	var cells [2]string
	moves := false
	for j, v := range []*papers.Outcome{&m.half[i], &m.double[i]} {
		change := *v.Ours / *base.Ours - 1
		moves = moves || !(math.Abs(change) <= leastMove) || v.Verdict != base.Verdict
		if cells[j] = fmt.Sprintf("%+.0f %%", 100*change); v.Verdict == base.Verdict {
			continue
		} else if v.Verdict == papers.Pass {
			cells[j] += " " + pass
		} else {
			cells[j] += " " + fail
		}
	}
	if !moves {
		return ""
	}
	return cells[0] + " / " + cells[1]
}

// tunedValue prints a tuned parameter's value, of each model where they differ.
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
