package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/sparseserve/sparseserve/experiments/validate"
)

// ablate prints what each part of the cost model is worth on the cards of kept runs.
func (c *validateCmd) ablate(app *App) error {
	var cards []validate.AblationCard
	for _, card := range c.Ablate {
		dir, profile, _ := strings.Cut(card, ",")
		cards = append(cards, validate.AblationCard{Dir: dir, Profile: profile})
	}
	a, err := validate.Ablate(cards)
	if err != nil {
		return err
	}
	switch {
	case c.JSON:
		return printJSON(app, a)
	case c.Markdown:
		markdownAblation(app.Stdout, a)
	default:
		printAblation(app.Stdout, a)
	}
	return nil
}

// ablationColumns are a row's cells: concept, part, and two numbers a card.
func ablationColumns(a *validate.Ablation, r *validate.AblationRow) []string {
	cells := []string{r.Concept, r.Part}
	for i := range a.Cards {
		cells = append(cells, fmt.Sprintf("%+.2f", 100*r.Worth[i].Decode),
			fmt.Sprintf("%+.2f", 100*r.Worth[i].Mixed))
	}
	return cells
}

func printAblation(w io.Writer, a *validate.Ablation) {
	fmt.Fprintln(w, "What each part of the cost model is worth: by how many points the mean "+
		"absolute error of a run's mean step time grows without it.")
	for i, card := range a.Cards {
		fmt.Fprintf(w, "card %d: %s, %s, with all parts %.2f %% (decode steps) and %.2f %% (mixed "+
			"steps)\n",
			i+1, card.Dir, count(a.Runs[i], "run"), 100*a.Errors[i].Decode, 100*a.Errors[i].Mixed)
	}
	t := newTable(w)
	header := table.Row{"concept", "part"}
	for i := range a.Cards {
		header = append(header, fmt.Sprintf("decode %d", i+1), fmt.Sprintf("mixed %d", i+1))
	}
	t.AppendHeader(header)
	for i := range a.Rows {
		if i > 0 && a.Rows[i].Concept != a.Rows[i-1].Concept {
			t.AppendSeparator()
		}
		var row table.Row
		for _, cell := range ablationColumns(a, &a.Rows[i]) {
			row = append(row, cell)
		}
		t.AppendRow(row)
	}
	t.SetColumnConfigs(rightAligned(3, 2+2*len(a.Cards)))
	t.Render()
	fmt.Fprintf(w, "A part pays with %.1f points or more of either kind of step on every card (law "+
		"12).\n", 100*validate.LeastWorth)
}

func markdownAblation(w io.Writer, a *validate.Ablation) {
	header, all := []string{"concept", "part"}, []string{"", "all parts, error in %"}
	for i, e := range a.Errors {
		header = append(header, fmt.Sprintf("card %d decode", i+1), fmt.Sprintf("card %d mixed", i+1))
		all = append(all, fmt.Sprintf("%.2f", 100*e.Decode), fmt.Sprintf("%.2f", 100*e.Mixed))
	}
	fmt.Fprint(w, markdownRow(header...), "|-|-|", strings.Repeat("-:|", 2*len(a.Cards)), "\n",
		markdownRow(all...))
	for i := range a.Rows {
		fmt.Fprint(w, markdownRow(ablationColumns(a, &a.Rows[i])...))
	}
}
