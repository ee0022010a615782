package answers

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/whatif"
	"github.com/sparseserve/sparseserve/internal/doc"
)

// knobEffects shows the effect of each setting.
func knobEffects(w *whatif.Result, c *whatif.Case, knobs []*whatif.KnobResult) (*doc.Chart,
	doc.Table) {
	chart := &doc.Chart{Kind: doc.Effects, Y: w.Label, Base: c.Base.Value,
		Title: fmt.Sprintf("%s; %s: %s", placeOf(c), w.Label, digits(c.Base.Value))}
	t := doc.Table{Title: "Knobs: " + c.Name, Columns: doc.Columns("knob", ">has", ">value",
		">"+w.Metric, ">change|%", ">interval|95 %", "limited by"),
		Note: fmt.Sprintf("%s, %s; %s: %s", placeOf(c), Count(c.Requests, "request"), w.Label,
			digits(c.Base.Value))}
	var keys []string
	for _, k := range knobs {
		keys = append(keys, k.Knob+" sets "+strings.Join(k.Keys, ", "))
		name := k.Knob
		if !k.Factor && k.Base != "" {
			name += " (" + k.Base + ")"
		}
		for i := range k.Points {
			p := &k.Points[i]
			e := doc.Effect{Knob: name, Setting: settingOf(k, p.Setting), Value: p.Value.Value,
				Change: 100 * p.Change, Below: below(p.Setting, k.Base)}
			interval := "-"
			if low, high := ends(p); p.Low != nil && p.High != nil {
				interval = percent(low) + " to " + percent(high)
				low, high = 100*low, 100*high
				e.Low, e.High = &low, &high
			}
			chart.Effects = append(chart.Effects, e)
			t.Add(k.Knob, settingOf(k, k.Base), e.Setting, e.Value, doc.As(e.Change, percent(p.Change)),
				interval, p.LimitedBy)
		}
	}
	t.Legend = []string{strings.Join(keys, "; ")}
	return chart, t
}

func heatOf(w *whatif.Result, c *whatif.Case) *doc.Chart {
	h := c.Heat
	out := &doc.Heat{A: knobName(h.A, h.FactorA), B: knobName(h.B, h.FactorB), ValuesA: h.ValuesA,
		ValuesB: h.ValuesB, Higher: w.Higher}
	for y, line := range h.Cells {
		for x, v := range line {
			if v == nil {
				continue
			}
			cell := doc.HeatCell{X: x, Y: y, Value: *v}
			if c.Base.Value != 0 {
				cell.Change = 100 * (*v/c.Base.Value - 1)
			}
			out.Cells = append(out.Cells, cell)
		}
	}
	return &doc.Chart{Kind: doc.HeatMap, Y: w.Label, Heat: out, Base: c.Base.Value,
		Title: fmt.Sprintf("%s; %s: %s", placeOf(c), w.Label, digits(c.Base.Value))}
}

// heatTable has one row per value of B and one column per value of A.
func heatTable(w *whatif.Result, c *whatif.Case) doc.Table {
	h := c.Heat
	t := doc.Table{Title: "Two knobs: " + c.Name,
		Note:    fmt.Sprintf("%s, %s across and %s down", w.Label, h.A, h.B),
		Columns: doc.Columns(">" + h.B)}
	for _, value := range h.ValuesA {
		t.Columns = append(t.Columns, doc.Column{Name: value, Number: true})
	}
	for i, line := range h.Cells {
		cells := []any{h.ValuesB[i]}
		for _, v := range line {
			if v == nil {
				cells = append(cells, doc.None())
			} else {
				cells = append(cells, *v)
			}
		}
		t.Add(cells...)
	}
	return t
}

func knobName(knob string, factor bool) string {
	if factor {
		return knob + " (factor)"
	}
	return knob
}

func below(setting, base string) bool {
	a, err1 := strconv.ParseFloat(setting, 64)
	b, err2 := strconv.ParseFloat(base, 64)
	return err1 == nil && err2 == nil && a < b
}
