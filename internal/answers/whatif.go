package answers

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/whatif"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/stats"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// WhatIf returns the document of a what-if of configurations, if they are known.
func WhatIf(name string, w *whatif.Result, varied ...[]config.Point) *doc.Doc {
	d := &doc.Doc{Title: name + ": what-if"}
	if len(varied) > 0 {
		d.Lead = append(d.Lead, Asked(varied...)+".")
	}
	better := "lower"
	if w.Higher {
		better = "higher"
	}
	d.Lead = append(d.Lead, fmt.Sprintf("%s, %s is better; %s, the same arrivals for every setting.",
		w.Label, better, listSeeds(w.Cases[0].Seeds)))
	caption := strings.Join(d.Lead, " ")
	for _, note := range w.Notes {
		d.Lead = append(d.Lead, strings.ReplaceAll(note, "\n", "; "))
	}
	knobs := doc.Figure{Name: "tornado", Title: "Each knob by itself", Caption: caption}
	heat := doc.Figure{Name: "heat", Title: "Two knobs together",
		Caption: caption + " Blue is better than what is configured, red worse."}
	var all []warn.Warning
	var sums []metrics.Summary
	none, whiskers := "", ""
	for _, c := range w.Cases {
		all = append(all, said(c.Base.Warnings, c.Name)...)
		sums = append(sums, metrics.Summary{System: c.Name, SLO: c.SLO})
		effective, idle := parted(c)
		d.Answers = append(d.Answers, mostEffect(w, c, effective)...)
		if len(idle) > 0 {
			name := c.Name
			if len(effective) == 0 { // no other sentence has the value
				name += ", " + stats.Digits(c.Base.Value) + " as configured"
			}
			none = fmt.Sprintf("%s: without effect: %s.", name, strings.Join(idle, ", "))
			d.Answers = append(d.Answers, none)
			knobs.Caption += " " + none
		}
		for _, x := range c.Thresholds {
			text := x.Question + ": " + x.Text
			if len(w.Cases) > 1 {
				text = c.Name + ": " + text
			}
			d.Answers = append(d.Answers, text)
		}
		if len(effective) > 0 {
			chart, t := knobEffects(w, c, effective)
			knobs.Charts, d.Tables = append(knobs.Charts, chart), append(d.Tables, t)
			if slices.ContainsFunc(chart.Bars, func(b doc.Bar) bool { return b.Low != nil }) {
				whiskers = " Whiskers: 95 % interval of the change over seeds."
			}
		}
		if c.Heat != nil {
			chart, t := heatOf(w, c)
			heat.Charts, d.Tables = append(heat.Charts, chart), append(d.Tables, t)
		}
	}
	knobs.Caption += whiskers
	d.Figures = drawable(knobs, heat)
	d.Lead = append(d.Lead, (&Runs{Sums: sums}).Levels()...)
	d.Warnings = Warnings(all, len(w.Cases))
	return d
}

// placeOf describes a case: server and load.
func placeOf(c *whatif.Case) string {
	text := fmt.Sprintf("%s: %s on %s", c.Name, c.Model, c.GPU)
	if load := c.Load(); load != "" {
		text += ", " + load
	}
	return text
}

// caseTitle adds the value as configured.
func caseTitle(w *whatif.Result, c *whatif.Case) string {
	return placeOf(c) + "; " + w.Label + ": " + digits(c.Base.Value)
}

// leastEffect is the relative change below which a knob counts as without effect.
const leastEffect = 0.0005

// parted lists the knobs with an effect, largest effect first. idle lists the other knobs with the
// values that were tried.
func parted(c *whatif.Case) (effective []*whatif.KnobResult, idle []string) {
	for _, k := range c.Sorted() {
		var values []string
		some := false
		for i := range k.Points {
			p := &k.Points[i]
			low, high := ends(p)
			changes := max(math.Abs(p.Change), math.Abs(low), math.Abs(high)) >= leastEffect
			some = some || changes || c.Base.Value == 0 && p.Value.Value != 0
			values = append(values, settingOf(k, p.Setting))
		}
		if some {
			effective = append(effective, k)
		} else if len(values) > 0 {
			idle = append(idle, k.Knob+" ("+strings.Join(values, ", ")+")")
		}
	}
	return effective, idle
}

// ends returns the ends of a change's interval; 0 if it has none.
func ends(p *whatif.Change) (low, high float64) {
	if p.Low != nil && p.High != nil {
		return *p.Low, *p.High
	}
	return 0, 0
}

// settingOf returns a value of a knob in words.
func settingOf(k *whatif.KnobResult, value string) string {
	if k.Factor {
		return "x " + stats.Short(value)
	}
	return stats.Short(value)
}

// mostEffect returns a sentence on the knob with the largest effect.
func mostEffect(w *whatif.Result, c *whatif.Case, effective []*whatif.KnobResult) []string {
	if len(effective) == 0 {
		return nil
	}
	k := effective[0]
	words := make([]string, len(k.Points))
	for i, p := range k.Points {
		words[i] = fmt.Sprintf("%s with %s (%s %%)", digits(p.Value.Value), settingOf(k, p.Setting),
			percent(p.Change))
	}
	return []string{fmt.Sprintf("%s: %s is %s, and %s changes it the most: %s.", c.Name, w.Label,
		digits(c.Base.Value), k.Knob, strings.Join(words, ", "))}
}

// readWhatIf builds the document of a what-if.
func readWhatIf(dir string) (*doc.Doc, error) {
	var w whatif.Result
	if err := readJSON(dir, whatif.ResultFile, &w); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, whatif.ResultFile)
	if len(w.Cases) == 0 {
		return nil, fmt.Errorf("%s: no case", path)
	}
	if !whole(w.Cases) {
		return nil, fmt.Errorf("%s: damaged: a case, or a part of one, is missing", path)
	}
	return onMachines(WhatIf(nameOf(dir), &w, configsOf([]string{dir})...), []string{dir}, nil)
}

// whole reports whether the cases of a file are complete.
func whole(cases []*whatif.Case) bool {
	for _, c := range cases {
		if c == nil || slices.Contains(c.Knobs, nil) || slices.Contains(c.Thresholds, nil) {
			return false
		}
		if h := c.Heat; h != nil && (len(h.Cells) != len(h.ValuesB) || len(h.Cells) == 0 ||
			slices.ContainsFunc(h.Cells, func(row []*float64) bool { return len(row) != len(h.ValuesA) })) {
			return false
		}
	}
	return true
}

// knobEffects shows the change that each setting makes, or its value if the base is 0. Intervals
// are cut at the possible values.
func knobEffects(w *whatif.Result, c *whatif.Case, knobs []*whatif.KnobResult) (*doc.Chart,
	doc.Table) {
	chart := &doc.Chart{Y: "change of " + w.Label + ", %", Title: caseTitle(w, c)}
	most := math.Inf(1)
	if c.Base.Value == 0 {
		chart.Y = w.Label
	} else if slices.ContainsFunc(metrics.All(), func(m metrics.Metric) bool {
		return m.Key == w.Metric && m.Unit == "%"
	}) {
		most = 100 * (100/c.Base.Value - 1)
	}
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
			b := doc.Bar{Group: name, Name: settingOf(k, p.Setting), Note: digits(p.Value.Value),
				Parts: []doc.Part{{Name: "larger, or another value", Color: "#e69f00",
					Value: 100 * p.Change}}}
			if below(p.Setting, k.Base) {
				b.Parts[0].Name, b.Parts[0].Color = "smaller than configured", "#0072b2"
			}
			if c.Base.Value == 0 {
				b.Parts[0].Value = p.Value.Value
			}
			interval := "-"
			if low, high := ends(p); p.Low != nil && p.High != nil {
				interval = percent(low) + " to " + percent(high)
				low, high = max(100*low, -100), min(100*high, most)
				b.Low, b.High = &low, &high
			}
			chart.Bars = append(chart.Bars, b)
			t.Add(k.Knob, settingOf(k, k.Base), b.Name, p.Value.Value,
				doc.As(100*p.Change, percent(p.Change)), interval, p.LimitedBy)
		}
	}
	t.Legend = []string{strings.Join(keys, "; ")}
	return chart, t
}

// heatOf shows the values of two knobs together, in a table with one row per value of B and one
// column per value of A.
func heatOf(w *whatif.Result, c *whatif.Case) (*doc.Chart, doc.Table) {
	h := c.Heat
	out := &doc.Heat{A: knobName(h.A, h.FactorA), B: knobName(h.B, h.FactorB), ValuesA: h.ValuesA,
		ValuesB: h.ValuesB, Higher: w.Higher}
	t := doc.Table{Title: "Two knobs: " + c.Name,
		Note:    fmt.Sprintf("%s, %s across and %s down", w.Label, h.A, h.B),
		Columns: doc.Columns(">" + h.B)}
	for _, value := range h.ValuesA {
		t.Columns = append(t.Columns, doc.Column{Name: value, Number: true})
	}
	for y, line := range h.Cells {
		cells := []any{h.ValuesB[y]}
		for x, v := range line {
			if v == nil {
				cells = append(cells, doc.None())
				continue
			}
			cell := doc.HeatCell{X: x, Y: y, Value: *v}
			if c.Base.Value != 0 {
				cell.Change = 100 * (*v/c.Base.Value - 1)
			}
			out.Cells, cells = append(out.Cells, cell), append(cells, *v)
		}
		t.Add(cells...)
	}
	return &doc.Chart{Y: w.Label, Heat: out, Title: caseTitle(w, c)}, t
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
