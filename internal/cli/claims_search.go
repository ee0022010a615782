package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/papers"
)

// search prints the claims under each kept change of a reading or a load, beside ours.
func (c *claimsCmd) search(app *App, claims []papers.Claim) error {
	changes, err := papers.KeptChanges()
	if err != nil {
		return err
	}
	columns := make([][]papers.Outcome, 1+len(changes))
	for i, change := range append([]string{""}, changes...) {
		if columns[i], err = papers.Kept(claims, change); err != nil {
			return err
		}
	}
	text := searchMarkdown(changes, columns)
	fmt.Fprint(app.Stdout, text)
	if c.Readme == "" {
		return nil
	}
	return writeBlock(c.Readme, c.block(), text)
}

// searchMarkdown has a row a number that some change was run for and a column a change, the first
// of which is none.
func searchMarkdown(changes []string, columns [][]papers.Outcome) string {
	var b strings.Builder
	row := []string{"claim", "paper", "ours"}
	for _, change := range changes {
		row = append(row, "`"+change+"`")
	}
	b.WriteString(markdownRow(row...) + "|-|" + strings.Repeat("-:|", 1+len(columns)) + "\n")
	for i := range columns[0] {
		measured := func(own []papers.Outcome) bool { return own[i].Measured() }
		if !slices.ContainsFunc(columns[1:], measured) {
			continue
		}
		row = []string{"`" + claimName(&columns[0][i]) + "`", claimed(&columns[0][i])}
		for _, own := range columns {
			row = append(row, strings.TrimSpace(ours(&own[i])+" "+string(own[i].Verdict)))
		}
		b.WriteString(markdownRow(row...))
	}
	row = []string{"in the band; ours of the same", "", ""}
	for _, own := range columns[1:] {
		var both [2][]papers.Outcome
		for i := range own {
			if own[i].Measured() {
				both[0], both[1] = append(both[0], own[i]), append(both[1], columns[0][i])
			}
		}
		row = append(row, fmt.Sprintf("%d of %d; %d", near(both[0]), len(both[0]), near(both[1])))
	}
	return b.String() + markdownRow(row...)
}
