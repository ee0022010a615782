package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/sparseserve/sparseserve/experiments/papers"
)

// printSwapped prints each number as it is and with models' parameters exchanged.
func printSwapped(w io.Writer, base, swapped []papers.Outcome) {
	t := newTable(w)
	t.AppendHeader(table.Row{"claim", "paper", "ours", "", "exchanged", "", "class"})
	for i := range base {
		b, s := &base[i], &swapped[i]
		t.AppendRow(table.Row{claimName(b), claimed(b), ours(b), outcome(b), ours(s), outcome(s),
			b.Class})
	}
	t.SetColumnConfigs(append(rightAligned(2, 3), rightAligned(5, 5)...))
	t.Render()
	for i, line := range tallies(swapped) {
		_, own, _ := strings.Cut(tallies(base)[i], ": ")
		fmt.Fprintf(w, "%s; ours: %s\n", line, own)
	}
	fmt.Fprintln(w, aboutSwapped)
}

const aboutSwapped = "Exchanged: LWM-7B has Llama3-8B's output_scale, Llama3-8B that of LWM-7B. " +
	"Three seeds of 100 requests, 4 groups of heads, goodput to a quarter; without intervals."

// passesMarkdown is a table of how many numbers pass: a row a paper and model, a column a class.
func passesMarkdown(names []string, models ...[]papers.Outcome) string {
	var b strings.Builder
	row := []string{""}
	for _, class := range papers.Classes() {
		row = append(row, classNames[class])
	}
	b.WriteString(markdownRow(row...) + "|-|" + strings.Repeat("-:|", len(papers.Classes())) + "\n")
	for _, paper := range papersOf(models[0]) {
		for i, outcomes := range models {
			row = []string{strings.TrimSpace(paper + " " + names[i])}
			for _, class := range papers.Classes() {
				own := ofClass(ofPaper(outcomes, paper), class)
				if len(own) == 0 {
					row = append(row, "-")
					continue
				}
				row = append(row, fmt.Sprintf("%d of %d", withVerdict(own, papers.Pass), len(own)))
			}
			b.WriteString(markdownRow(row...))
		}
	}
	return b.String()
}

func ofPaper(outcomes []papers.Outcome, paper string) (own []papers.Outcome) {
	for _, v := range outcomes {
		if v.Paper == paper {
			own = append(own, v)
		}
	}
	return own
}

func papersOf(outcomes []papers.Outcome) (names []string) {
	for _, v := range outcomes {
		if !slices.Contains(names, v.Paper) {
			names = append(names, v.Paper)
		}
	}
	return names
}
