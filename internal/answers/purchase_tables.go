package answers

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/capacity"
	"github.com/sparseserve/sparseserve/internal/doc"
)

// known returns a cell with a number; empty if unknown.
func known(v float64, text ...string) doc.Cell {
	if v == 0 {
		return doc.Cell{}
	}
	return doc.As(v, strings.Join(text, ""))
}

// dollars returns a cell with a price; empty if unknown.
func dollars(v float64) doc.Cell { return known(v, capacity.USD(v)) }

// shownTable has one row per first candidate.
func shownTable(a *capacity.Purchase, shown []*capacity.Choice) doc.Table {
	t := doc.Table{Title: "Candidates", Columns: doc.Columns("candidate", "replicas x GPUs",
		">cost|$/hour", ">holds|"+a.LoadUnit, ">headroom|%", "nearest limits|% of it",
		"short of, or why not")}
	some := slices.ContainsFunc(shown, func(c *capacity.Choice) bool { return c.Replicas > 0 })
	for _, c := range shown {
		var replicas string
		var cost, holds, headroom doc.Cell
		switch {
		case c.Replicas > 0:
			replicas = fmt.Sprintf("%d x %d %s", c.Replicas, c.GPUs/c.Replicas, CardName(c.GPU))
			cost = dollars(c.USDPerHour)
		case some && c.Outcome == capacity.Dearer:
			replicas = "not searched"
		case some:
			replicas = c.Outcome
		}
		if c.Largest != nil && c.Headroom != nil {
			holds = doc.Number(*c.Largest)
			headroom = doc.Fixed(100**c.Headroom, "%.0f")
		}
		var limits []string
		for _, l := range c.Limits[:min(2, len(c.Limits))] {
			limits = append(limits, fmt.Sprintf("%s %.0f", limitName(&l), 100*l.Of))
		}
		t.Add(c.Name, replicas, cost, holds, headroom, strings.Join(limits, ", "),
			cmp.Or(strings.Join(c.Short[:min(2, len(c.Short))], ", then "), whyNot(c)))
	}
	fillBlanks(&t)
	return t
}

// limitName names a limit without its value, such as P99 TTFT.
func limitName(l *capacity.Share) string {
	if name, _, bound := strings.Cut(l.Limit, " <= "); bound {
		return name
	}
	return boundName.Replace(l.Name)
}

// fillBlanks writes a dash into the blank cells of the columns that have content.
func fillBlanks(t *doc.Table) {
	for _, column := range t.Shown() {
		for i := range t.Rows {
			if t.Rows[i].At(column) == "" {
				t.Rows[i].Cells[column] = doc.None()
			}
		}
	}
}

// whyNot explains why a candidate is not the choice.
func whyNot(c *capacity.Choice) string {
	switch {
	case c.Outcome == capacity.Meets && c.Largest == nil:
		return "dearer, so its headroom is not searched"
	case c.Outcome == capacity.TooLarge:
		return c.Outcome + " for its GPUs"
	case c.Outcome == capacity.TooShort:
		return "its context is " + c.Outcome + " for the traffic"
	}
	return boundName.Replace(c.Reason)
}

// candidateTable lists the result of every candidate, and its cost at each price.
func candidateTable(a *capacity.Purchase) doc.Table {
	t := doc.Table{Title: "What each candidate comes to", Folded: true, Columns: doc.Columns(
		"candidate", "outcome", ">cost|$/hour", "at the price of", ">a GPU|$/hour", ">input|$/M tokens",
		">output|$/M tokens", ">both|$/M tokens", ">output|tok/s", ">runs", "reason"),
		Note: "Of one that is dearer, the cost is the least that it would be."}
	for i := range a.Candidates {
		c := &a.Candidates[i]
		t.Add(c.Name, c.Outcome, dollars(c.USDPerHour),
			strings.TrimSuffix(c.Price.Provider+", "+c.Price.Date, ", "), dollars(c.Price.USDPerHour),
			dollars(c.USDPerMInput), dollars(c.USDPerMOutput), dollars(c.USDPerMTotal),
			known(c.ThroughputTokS), c.Runs, boundName.Replace(c.Reason))
	}
	fillBlanks(&t)
	return t
}

// Colours of candidates by outcome.
const meetsColor, dearerColor, missesColor = "#0072b2", "#d9d9d9", "#c62f1f"

// purchaseFigures draws the cost of the first candidates and their distance to the limits, and each
// limit against the cost.
func purchaseFigures(a *capacity.Purchase, shown []*capacity.Choice) (figures []doc.Figure) {
	asked := fmt.Sprintf("%s on %s; prompts %s, outputs %s; %s; %q of %s.",
		strings.Join(a.Question.Models, ", "), a.Question.CardsText(), a.Question.Prompts,
		a.Question.Outputs, a.Load, a.Prices, a.PricesFile)
	for _, f := range []doc.Figure{
		{Name: "plan", Title: "Candidates", Caption: asked + " At bars: what is bought, and how much " +
			"more load it holds; the nearest limit. Dashed: the limit.",
			Charts: candidateCharts(shown)},
		{Name: "plan-limits", Title: "Cost against the service level", Caption: asked +
			" Each candidate that meets the level, under the load. Dashed: the limit.",
			Charts: limitCharts(a)},
	} {
		f.Charts = slices.DeleteFunc(f.Charts, func(c *doc.Chart) bool {
			return len(c.Bars)+len(c.Lines) == 0
		})
		figures = append(figures, drawable(f)...)
	}
	return figures
}

// candidateCharts draws what candidates cost, and how near they are to their limits.
func candidateCharts(shown []*capacity.Choice) []*doc.Chart {
	cost := &doc.Chart{Title: "What serves the load", Y: "cost ($ an hour)"}
	near := &doc.Chart{Title: "How near its limits", Levels: []float64{100},
		Y: "used of the nearest limit (%)"}
	for _, o := range shown {
		costs := doc.Part{Name: "costs at least this, if it meets the level", Color: dearerColor,
			Value: o.USDPerHour}
		uses := doc.Part{Name: "misses it", Color: missesColor}
		note := capacity.USD(o.USDPerHour)
		if o.Outcome == capacity.Meets {
			costs.Name, costs.Color = "meets the service level", meetsColor
			uses.Name, uses.Color = costs.Name, costs.Color
			note += ", " + Count(o.GPUs, "GPU")
		}
		if o.Headroom != nil {
			note += fmt.Sprintf(", %+.0f %% load", 100**o.Headroom)
		}
		if o.USDPerHour > 0 && !math.IsInf(o.USDPerHour, 0) {
			cost.Bars = append(cost.Bars, doc.Bar{Name: o.Name, Note: note,
				Parts: []doc.Part{costs}})
		}
		if len(o.Limits) > 0 && !math.IsInf(o.Limits[0].Of, 0) {
			uses.Value = 100 * o.Limits[0].Of
			near.Bars = append(near.Bars, doc.Bar{Name: o.Name, Parts: []doc.Part{uses},
				Note: fmt.Sprintf("%.0f %% of %s", uses.Value, o.Limits[0].Limit)})
		}
	}
	return []*doc.Chart{cost, near}
}

// limitCharts has one chart per bound of the level: a dot for each candidate that meets it, in the
// colour of its card, and the bound as a line.
func limitCharts(a *capacity.Purchase) (charts []*doc.Chart) {
	colors := []string{"#0072b2", "#e69f00", "#009e73", "#c62f1f", "#a0609a", "#7a7a7a", "#56b4e9",
		"#1a1a1a"}
	for _, limit := range a.Limits {
		c := &doc.Chart{Title: limit.Bound, X: "cost ($ an hour)",
			Y:      "under the load (s)",
			Levels: []float64{limit.AskedS}}
		for i := range a.Candidates {
			o := &a.Candidates[i]
			at := slices.IndexFunc(o.Limits, func(l capacity.Share) bool { return l.Limit == limit.Bound })
			if o.Outcome != capacity.Meets || at < 0 {
				continue
			}
			l := c.Line(CardName(o.GPU))
			l.Color, l.Dots = cmp.Or(l.Color, colors[(len(c.Lines)-1)%len(colors)]), true
			l.Points = append(l.Points, doc.Point{X: o.USDPerHour, Y: o.Limits[at].Of * limit.AskedS,
				Note: shortName(a, o)})
		}
		c.LogX = farApart(c.Lines, 4, func(p doc.Point) float64 { return p.X })
		charts = append(charts, c)
	}
	return charts
}

// shortName returns a candidate's name without its card, which its colour shows, and without a
// system that all candidates share.
func shortName(a *capacity.Purchase, c *capacity.Choice) string {
	name := strings.Replace(c.Name, " gpu="+c.GPU, "", 1)
	if len(a.Question.Systems) == 1 {
		name = strings.TrimPrefix(name, c.System+" ")
	}
	return name
}
