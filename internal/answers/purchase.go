package answers

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/capacity"
	"github.com/sparseserve/sparseserve/internal/doc"
)

// Purchase returns the document on what to buy for a load: the question, the choice with its
// evidence, and all candidates.
func Purchase(name string, a *capacity.Purchase) *doc.Doc {
	d := &doc.Doc{Title: name + ": what to buy", Lead: a.Question.Lines()}
	d.Lead = append(d.Lead, fmt.Sprintf("runs: %d, of %s for a replica, %s", a.Runs,
		Count(a.Requests, "request"), listSeeds(a.Seeds)))
	d.Warnings = Warnings(a.Warnings, 1)
	var chosen doc.Table
	switch {
	case a.Choice != nil:
		d.Answers, chosen = choice(a)
	case a.Nearest != nil:
		d.Answers = nearestLines(a)
	}
	shown, left := firstOfFamilies(a.Candidates)
	d.Figures = purchaseFigures(a, shown)
	first := shownTable(a, shown)
	first.Legend = left
	d.Tables = []doc.Table{first}
	addTable(d, chosen)
	addTable(d, candidateTable(a))
	return d
}

// choice describes the choice: what to buy, the command that starts a replica, and a table of what
// it costs, holds and rests on.
func choice(a *capacity.Purchase) (lines []string, t doc.Table) {
	c, p := a.Choice, &a.Choice.Price
	lines = []string{fmt.Sprintf("Buy %s of %s: %s of %s, %s an hour.", Count(c.Replicas, "replica"),
		c.Name, Count(c.GPUs, "GPU"), CardName(c.GPU), capacity.USD(c.USDPerHour))}
	if a.Serve == "" {
		lines = append(lines, "a replica: no command: "+a.NoServe)
	} else if lines = append(lines, "a replica: "+a.Serve); a.Lacks != "" {
		lines = append(lines, "the command: "+a.Lacks)
	}
	t = doc.Table{Title: "The choice", Columns: doc.Columns("figure", "of the choice")}
	add := func(name, format string, args ...any) { t.Add(name, fmt.Sprintf(format, args...)) }
	add("price", "%s a GPU and hour: %q of %s; %s, %s, %s, %s", capacity.USD(p.USDPerHour), a.Prices,
		a.PricesFile, p.Provider, p.Offer, p.Date, p.Source)
	low, high := &a.AtPrices[0], &a.AtPrices[1]
	if low.Price.USDPerHour < high.Price.USDPerHour {
		add("price range", "%s an hour at the lowest price there (%s), %s at the highest (%s)",
			capacity.USD(low.USDPerHour), low.Price.Provider, capacity.USD(high.USDPerHour),
			high.Price.Provider)
	}
	add("tokens", "the whole cost is %s a million input tokens, %s output, %s of both together",
		capacity.USD(c.USDPerMInput), capacity.USD(c.USDPerMOutput), capacity.USD(c.USDPerMTotal))
	addMargins(a, add)
	if c.Largest != nil && c.Headroom != nil {
		add("headroom", "%.0f %%: up to %s %s%s", 100**c.Headroom, digits(*c.Largest), a.LoadUnit,
			beyond(c))
	}
	t.Add("limits", used(c.Limits))
	if len(a.Steps) > 1 {
		add("steps", "of %d tokens at most; tried: %s", c.StepTokens,
			strings.Trim(fmt.Sprint(a.Steps), "[]"))
	}
	if c.Preempted > 0 {
		add("preempted", "%d times under the load; %s of the steps' time computes lost KV again",
			c.Preempted, share(c.RecomputedShare))
	}
	t.Add("short of", shortOf(c))
	t.Add("accuracy", a.Proof.Accuracy)
	t.Add("error", provenError(a))
	t.Add("weakest", a.Proof.Weakest)
	return lines, t
}

// beyond lists the limits that the choice misses beyond its largest load.
func beyond(c *capacity.Choice) (text string) {
	if len(c.LimitedBy) > 0 {
		missed := boundName.Replace(strings.Join(c.LimitedBy, " and "))
		text = ", then it misses " + strings.ReplaceAll(missed, "queue", "a stable queue")
	}
	if c.Beyond != nil {
		text += fmt.Sprintf("; at %s, %s has %.3g times its limit", digits(c.Fails), c.Beyond.Limit,
			c.Beyond.Of)
	}
	return text
}

// addMargins describes the margin of the choice, and what would be cheaper without it.
func addMargins(a *capacity.Purchase, add func(name, format string, args ...any)) {
	load, down := "the load", ""
	if a.Question.Headroom > 0 {
		load = share(a.Question.Headroom) + " more load"
	}
	if n := a.Question.Spare; n > 0 {
		down = " with " + Count(n, "replica") + " down"
	}
	add("margin", "holds %s%s: %s", load, down, used(a.Choice.Planned))
	for _, l := range a.Limits {
		why, late := "error of such predictions, measured", ""
		if !l.Measured {
			why = "error is assumed, because no such run was measured"
		}
		if l.LateS > 0 {
			late = fmt.Sprintf(" and %g s", l.LateS)
		}
		if l.Error > 0 {
			add("margin of a limit", "%s is planned to %.4g s: %s%s %s", l.Bound, l.PlannedS,
				share(l.Error), late, why)
		}
	}
	switch b := a.Bare; {
	case b == nil:
	case b.USDPerHour > a.Choice.USDPerHour*(1-1e-9):
		add("cheapest", "nothing is cheaper without a margin")
	default:
		add("cheapest", "without a margin %s: %s", bareText(b), used(b.Limits))
	}
}

func bareText(b *capacity.Bare) string {
	return fmt.Sprintf("%s of %s, %s an hour", Count(b.Replicas, "replica"), b.Name,
		capacity.USD(b.USDPerHour))
}

// nearestLines reports that no candidate meets the level, the nearest one and its misses.
func nearestLines(a *capacity.Purchase) []string {
	lines := []string{fmt.Sprintf("No candidate meets the service level with %s more load, with any "+
		"number of replicas. The nearest is %s:", share(a.Question.Headroom), a.Nearest.Name)}
	for _, l := range a.Nearest.Limits {
		what := "holds"
		if l.Of > 1 {
			what = "misses"
		}
		lines = append(lines, fmt.Sprintf("%s %s: %.3g times the limit", what, l.Limit, l.Of))
	}
	if b := a.Bare; b != nil {
		lines = append(lines, "without a margin "+bareText(b)+", would do: "+used(b.Limits))
	}
	return append(lines, "error: "+provenError(a), "weakest: "+a.Proof.Weakest)
}

// provenError is the error of such predictions where it was measured.
func provenError(a *capacity.Purchase) string {
	e := &a.Proof
	return fmt.Sprintf("%s: %s (%s)", e.Class, cmp.Or(e.Measured, "not measured"), e.Source)
}

// used lists the used share of each limit.
func used(limits []capacity.Share) string {
	words := make([]string, len(limits))
	for i, l := range limits {
		words[i] = fmt.Sprintf("%s: %.0f %% used", l.Limit, 100*l.Of)
	}
	return strings.Join(words, "; ")
}

// share formats a share in %.
func share(v float64) string { return fmt.Sprintf("%.3g %%", 100*v) }

// shortOf lists the effect of 10 % more of each resource that matters.
func shortOf(c *capacity.Choice) string {
	var words []string
	for _, e := range c.Effects[:min(len(c.Effects), len(c.Short))] {
		words = append(words, fmt.Sprintf("%s (a tenth more takes %.1f %% off the nearest limit)",
			e.Resource, 100*e.Less))
	}
	return cmp.Or(strings.Join(words, "; "), "nothing that a tenth more of would change")
}

// CardName returns a card's name without the folder of its file.
func CardName(gpu string) string {
	return strings.TrimSuffix(gpu[strings.LastIndexAny(gpu, `/\`)+1:], ".toml")
}

// readPurchase builds the document of a purchase plan.
func readPurchase(dir string) (*doc.Doc, error) {
	var a capacity.Purchase
	if err := readJSON(dir, capacity.PurchaseFile, &a); err != nil {
		return nil, err
	}
	if len(a.Candidates) == 0 {
		return nil, fmt.Errorf("%s: no candidate", filepath.Join(dir, capacity.PurchaseFile))
	}
	_, folders, _, err := runFolders(dir)
	if err != nil {
		return nil, err
	}
	p, err := onMachines(Purchase(nameOf(dir), &a), folders, func(m *machine) bool {
		// A card with 10 % more of a figure only shows the limiting resources of a candidate.
		return len(m.Card) == 0
	})
	if err == nil {
		addFile(p, filepath.Join(dir, capacity.ChoiceFile), capacity.ChoiceFile)
	}
	return p, err
}

// mostCandidates is the maximum number of candidates in the first table and the charts.
const mostCandidates = 12

// firstOfFamilies returns the first candidates, without candidates that differ from an earlier one
// only by a step size that the plan chose. left counts the omitted candidates.
func firstOfFamilies(all []capacity.Choice) (shown []*capacity.Choice, left []string) {
	var families []string
	for i := range all {
		c := &all[i]
		if family := cmp.Or(c.Family, c.Name); len(shown) < mostCandidates &&
			!slices.Contains(families, family) {
			shown, families = append(shown, c), append(families, family)
		}
	}
	if n := len(all) - len(shown); n > 0 {
		left = []string{fmt.Sprintf("and %s that are dearer, do not serve, or differ by step size "+
			"alone (purchase.json)", Count(n, "candidate"))}
	}
	return shown, left
}
