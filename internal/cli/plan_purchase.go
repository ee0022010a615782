package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/sparseserve/sparseserve/experiments/capacity"
	"github.com/sparseserve/sparseserve/figures"
	"github.com/sparseserve/sparseserve/internal/warn"
)

// shownCandidates is how many rows of candidates are printed; purchase.json has all.
const shownCandidates = 12

// purchase looks for what to buy, writes the answer into a folder and prints it.
func (p *planCmd) purchase(
	ctx context.Context,
	app *App,
	planner *capacity.Planner,
	offers *capacity.Offers,
	out, points string,
) error {
	bar := newProgress(app.Stderr, "candidates")
	planner.Planned, planner.Finished = bar.planned, bar.finished
	planner.Say = bar.say
	answer, notes, err := planner.Purchase(ctx, offers)
	bar.close()
	printNotes(app.Stderr, notes)
	if err != nil {
		return interruptedPlan(ctx, err)
	}
	files, err := answer.Write(out)
	if err != nil {
		return err
	}
	if p.JSON {
		return printJSON(app, answer)
	}
	drawn, err := figures.DrawPlan(ctx, out, out)
	if err != nil {
		return err
	}
	printPurchase(app.Stdout, answer)
	printFiles(app.Stdout, out, answerFiles(out, files, drawn), points)
	return nil
}

// printPurchase prints the answer: the candidates, then what to buy and what that rests on.
func printPurchase(w io.Writer, a *capacity.Purchase) {
	fmt.Fprintf(w, "Question:\n%s", a.Question.String())
	printCandidates(w, a)
	switch {
	case a.Choice != nil:
		printChoice(w, a)
	case a.Nearest != nil:
		printNearest(w, a)
	}
	var said []warn.Said
	for _, warning := range a.Warnings {
		said = append(said, warn.Said{Warning: warning})
	}
	printGroups(w, warn.Gather(said))
}

// printCandidates prints a row for each of the first candidates.
func printCandidates(w io.Writer, a *capacity.Purchase) {
	t := newTable(w)
	t.AppendHeader(
		table.Row{
			"candidate",
			"GPUs",
			"replicas",
			"$/hour",
			"$/M tokens",
			"holds",
			"headroom",
			"nearest limit",
			"next",
			"short of",
			"",
		},
	)
	t.AppendHeader(table.Row{"", "", "", "", "in / out", a.LoadUnit, "%", "% of it", "", "", ""})
	more, shown, steps := map[string]int{}, map[string]bool{}, 0
	for i := range a.Candidates {
		c := &a.Candidates[i]
		if shown[c.Family] {
			steps++
			continue
		}
		if len(shown) >= shownCandidates {
			more[c.Outcome]++
			continue
		}
		shown[c.Family] = true
		row := table.Row{
			c.Name,
			"",
			"",
			"",
			"",
			"",
			"",
			limitText(c, 0),
			limitText(c, 1),
			strings.Join(c.Short[:min(2, len(c.Short))], ", then "),
			c.Reason,
		}
		switch c.Outcome {
		case capacity.TooLarge:
			row[10] = c.Outcome + " for its GPUs"
		case capacity.TooShort:
			row[10] = "its context is " + c.Outcome + " for the traffic"
		}
		if c.Replicas > 0 {
			row[1], row[2] = fmt.Sprintf("%d %s", c.GPUs, cardName(c.GPU)), c.Replicas
			row[3] = capacity.USD(c.USDPerHour)
			row[4] = capacity.USD(c.USDPerMInput) + " / " + capacity.USD(c.USDPerMOutput)
		}
		if c.Largest != nil {
			row[5], row[6] = digits(*c.Largest), strconv.FormatFloat(100**c.Headroom, 'f', 0, 64)
		}
		t.AppendRow(row)
	}
	t.SetColumnConfigs(
		append(
			rightAligned(3, 7),
			table.ColumnConfig{Number: 11, WidthMax: 36, WidthMaxEnforcer: text.WrapSoft},
		),
	)
	t.Render()
	if steps > 0 {
		fmt.Fprintf(w, "and %s of these with other step sizes (purchase.json)\n",
			count(steps, "candidate"))
	}
	for _, outcome := range []string{
		capacity.Meets, capacity.Dearer, capacity.Misses, capacity.TooShort, capacity.TooLarge} {
		if more[outcome] > 0 {
			fmt.Fprintf(
				w,
				"and %d that %s (purchase.json)\n",
				more[outcome],
				map[string]string{capacity.Meets: "meet the level and cost more",
					capacity.Dearer: "cost more", capacity.Misses: "miss the level",
					capacity.TooShort: "have too short a context",
					capacity.TooLarge: "do not fit their GPUs"}[outcome],
			)
		}
	}
}

// limitText is a limit that a candidate is near to, and how near.
func limitText(c *capacity.Choice, i int) string {
	if i >= len(c.Limits) {
		return ""
	}
	return fmt.Sprintf("%s %.0f", c.Limits[i].Name, 100*c.Limits[i].Of)
}

// cardName is a card without the folder of its file.
func cardName(gpu string) string {
	return strings.TrimSuffix(gpu[strings.LastIndexAny(gpu, `/\`)+1:], ".toml")
}

// printChoice says what to buy and what the answer rests on.
func printChoice(w io.Writer, a *capacity.Purchase) {
	c := a.Choice
	fmt.Fprintf(w, "\nBuy %s of %s: %s of %s, %s an hour.\n", count(c.Replicas, "replica"),
		inCell(c.Name),
		count(c.GPUs, "GPU"), cardName(c.GPU), capacity.USD(c.USDPerHour))
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "  %-11s%s\n", name, inCell(fmt.Sprintf(format, args...)))
	}
	row(
		"price",
		"%s a GPU and hour: %q of %s; %s",
		capacity.USD(c.Price.USDPerHour),
		a.Prices,
		a.PricesFile,
		priceText(&c.Price),
	)
	low, high := &a.AtPrices[0], &a.AtPrices[1]
	if low.Price.USDPerHour < high.Price.USDPerHour {
		row(
			"",
			"%s an hour at the lowest price there (%s), %s at the highest (%s)",
			capacity.USD(
				low.USDPerHour,
			),
			low.Price.Provider,
			capacity.USD(high.USDPerHour),
			high.Price.Provider,
		)
	}
	row("tokens", "%s a million input tokens, %s output, %s of both, each with the whole cost",
		capacity.USD(c.USDPerMInput), capacity.USD(c.USDPerMOutput), capacity.USD(c.USDPerMTotal))
	printMargin(row, a)
	if c.Largest != nil {
		beyond := ""
		if len(c.LimitedBy) > 0 {
			beyond = ", missed beyond: " + strings.Join(c.LimitedBy, " and ")
		}
		if c.Beyond != nil {
			beyond += fmt.Sprintf("; at %s, %s has %.3g times its limit", digits(c.Fails), c.Beyond.Limit,
				c.Beyond.Of)
		}
		row("headroom", "%.0f %%: holds %s %s%s", 100**c.Headroom, digits(*c.Largest), a.LoadUnit, beyond)
	}
	row("limits", "%s", usedText(c.Limits))
	if len(a.Steps) > 1 {
		row("steps", "of %d tokens at most; tried: %s", c.StepTokens,
			strings.Trim(fmt.Sprint(a.Steps), "[]"))
	}
	if c.Preempted > 0 {
		row("preempted", "%d times under the load; %s of the steps' time computes lost KV again",
			c.Preempted, inPercent(c.RecomputedShare))
	}
	row("short of", "%s", effectsText(c))
	row("accuracy", "%s", a.Proof.Accuracy)
	printProof(w, a)
	if a.Serve != "" {
		row("a replica", "%s", a.Serve)
		if a.Lacks != "" {
			row("", "%s", a.Lacks)
		}
	} else {
		row("a replica", "no vllm serve: %s", a.NoServe)
	}
	fmt.Fprintf(w, "\n%s", a.System)
}

// printMargin says what the choice holds beyond the question, and what would be cheaper without.
func printMargin(row func(name, format string, args ...any), a *capacity.Purchase) {
	q := &a.Question
	down := ""
	if q.Spare > 0 {
		down = " with " + count(q.Spare, "replica") + " down"
	}
	load := "the load"
	if q.Headroom > 0 {
		load = inPercent(q.Headroom) + " more load"
	}
	row("margin", "holds %s%s: %s", load, down, usedText(a.Choice.Planned))
	for _, l := range a.Limits {
		why := "error of such predictions, measured"
		if !l.Measured {
			why = "error is assumed: nothing of the kind was measured"
		}
		if l.Error > 0 {
			late := ""
			if l.LateS > 0 {
				late = fmt.Sprintf(" and %g s", l.LateS)
			}
			row("", "%s is planned to %.4g s: %s%s %s", l.Bound, l.PlannedS, inPercent(l.Error), late, why)
		}
	}
	switch b := a.Bare; {
	case b == nil:
	case b.USDPerHour > a.Choice.USDPerHour*(1-1e-9):
		row("cheapest", "nothing is cheaper without a margin")
	default:
		row("cheapest", "without a margin %s of %s, %s an hour: %s", count(b.Replicas, "replica"), b.Name,
			capacity.USD(b.USDPerHour), usedText(b.Limits))
	}
}

// usedText lists how much of each limit is used.
func usedText(limits []capacity.Share) string {
	var words []string
	for _, l := range limits {
		words = append(words, fmt.Sprintf("%s: %.0f %% used", l.Limit, 100*l.Of))
	}
	return strings.Join(words, "; ")
}

// inPercent is a share as people write it.
func inPercent(share float64) string { return fmt.Sprintf("%.3g %%", 100*share) }

// printProof says how good the prediction is.
func printProof(w io.Writer, a *capacity.Purchase) {
	measured := a.Proof.Measured
	if measured == "" {
		measured = "not measured"
	}
	fmt.Fprintf(w, "  %-11s%s: %s (%s)\n", "error", a.Proof.Class, measured, a.Proof.Source)
	fmt.Fprintf(w, "  %-11s%s\n", "weakest", a.Proof.Weakest)
}

// effectsText lists what a tenth more of each resource that matters changes.
func effectsText(c *capacity.Choice) string {
	var words []string
	for _, e := range c.Effects {
		if len(words) < len(c.Short) {
			words = append(
				words,
				fmt.Sprintf("%s (a tenth more takes %.1f %% off the nearest limit)", e.Resource, 100*e.Less),
			)
		}
	}
	if len(words) == 0 {
		return "nothing that a tenth more of would change"
	}
	return strings.Join(words, "; ")
}

// printNearest says that nothing meets the level, what is nearest to it and what that misses.
func printNearest(w io.Writer, a *capacity.Purchase) {
	c := a.Nearest
	fmt.Fprintf(
		w,
		"\nNo candidate meets the service level with %s more load, with any number of replicas. "+
			"The nearest is %s:\n",
		inPercent(a.Question.Headroom),
		c.Name,
	)
	for _, l := range c.Limits {
		what := "holds"
		if l.Of > 1 {
			what = "misses"
		}
		fmt.Fprintf(w, "  %s %s: %.3g times the limit\n", what, l.Limit, l.Of)
	}
	if b := a.Bare; b != nil {
		fmt.Fprintf(w, "  without a margin %s of %s, %s an hour, would do: %s\n",
			count(b.Replicas, "replica"), b.Name, capacity.USD(b.USDPerHour), usedText(b.Limits))
	}
	printProof(w, a)
	fmt.Fprintf(w, "\n%s", a.System)
}

// priceText says where a price is from.
func priceText(p *capacity.Price) string {
	return fmt.Sprintf("%s, %s, %s, %s", p.Provider, p.Offer, p.Date, p.Source)
}
