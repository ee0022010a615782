package answers

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/whatif"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/warn"
)

// readWhatIf makes the page of a what-if.
func readWhatIf(dir string) (*builder, error) {
	var w whatif.Result
	if err := readJSON(dir, whatif.ResultFile, &w); err != nil {
		return nil, err
	}
	if len(w.Cases) == 0 {
		return nil, fmt.Errorf("%s: no case", filepath.Join(dir, whatif.ResultFile))
	}
	p := &builder{Doc: doc.Doc{Title: nameOf(dir) + ": what-if"}}
	better := "lower"
	if w.Higher {
		better = "higher"
	}
	first := w.Cases[0]
	p.Lead = []string{fmt.Sprintf("%s of %s on %s, %s is better; %d requests a run, %s, the "+
		"same arrivals for every setting.",
		w.Label, first.Model, first.GPU, better, first.Requests, seeds(len(first.Seeds))), "SLO: " +
		first.SLO + "."}
	p.Lead = append(p.Lead, w.Notes...)
	var warnings []warn.Said
	for _, c := range w.Cases {
		for _, w := range c.Base.Warnings {
			warnings = append(warnings, warn.Said{Warning: w, Of: c.Name})
		}
		for _, x := range c.Thresholds {
			p.Answers = append(p.Answers, fmt.Sprintf("%s: %s: %s", c.Name, x.Question, x.Text))
		}
		p.addCase(&w, c)
	}
	p.warn(nil, warnings, len(w.Cases))
	if _, err := p.restOn([]string{dir}, nil); err != nil {
		return nil, err
	}
	p.addFile(filepath.Join(dir, "config.toml"), "config.toml")
	return p, nil
}

func (p *builder) addCase(w *whatif.Result, c *whatif.Case) {
	name := c.Name
	if load := c.Load(); load != "" {
		name += " at " + load
	}
	name += ", " + digits(c.Base.Value)
	if len(c.Knobs) > 0 {
		drawn, t := tornado(w, c)
		p.Figures = append(p.Figures, doc.Figure{Title: "Each knob by itself: " + name,
			Charts: []*doc.Chart{drawn}})
		t.Title = "Knobs: " + c.Name
		p.Tables = append(p.Tables, t)
	}
	if c.Heat != nil {
		p.Figures = append(p.Figures, doc.Figure{Title: "Two knobs together: " + name,
			Caption: "Blue is better than what there is, red worse.", Charts: []*doc.Chart{heatOf(w, c)}})
	}
	for _, x := range c.Thresholds {
		t := doc.Table{Title: x.Name + ": " + c.Name, Note: "Every value that was looked at.",
			Columns: columns(2, x.Knob, "answer", "value", "against"), Folded: true}
		tried := slices.Clone(x.Tried)
		slices.SortFunc(tried, func(a, b whatif.Answer) int {
			return cmp.Compare(parsed(a.Setting), parsed(b.Setting))
		})
		for _, a := range tried {
			t.Rows = append(t.Rows, row(a.Setting, string(a.Verdict), digits(a.Value),
				digits(a.Against)))
		}
		p.Tables = append(p.Tables, t)
	}
}

// tornado has the knobs of the most effect first.
func tornado(w *whatif.Result, c *whatif.Case) (*doc.Chart, doc.Table) {
	out := &doc.Chart{Kind: doc.Effects, X: "change of " + w.Label, Y: "change of " +
		w.Label + ", %"}
	t := doc.Table{Columns: columns(1, "knob", "has", "value", w.Metric, "change %", "95 % interval",
		"limited by")}
	var keys []string
	for _, k := range c.Sorted() {
		keys = append(keys, k.Knob+": "+strings.Join(k.Keys, ", "))
		for _, q := range k.Points {
			value, has := q.Setting, k.Base
			if k.Factor {
				value, has = "x "+value, "x "+has
			}
			e := doc.Effect{Name: k.Knob + " " + value, Value: q.Value.Value, Change: 100 * q.Change,
				Below: below(q.Setting, k.Base)}
			interval := "-"
			if q.Low != nil && q.High != nil {
				low, high := 100**q.Low, 100**q.High
				e.Low, e.High = &low, &high
				interval = percent(*q.Low) + " to " + percent(*q.High)
			}
			out.Effects = append(out.Effects, e)
			t.Rows = append(t.Rows, row(k.Knob, has, value, digits(q.Value.Value),
				percent(q.Change), interval, q.LimitedBy))
		}
	}
	t.Note = "What each sets: " + strings.Join(keys, "; ") + "."
	return out, t
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
	return &doc.Chart{Kind: doc.HeatMap, Y: w.Label, Heat: out}
}

func knobName(knob string, factor bool) string {
	if factor {
		return knob + " (factor)"
	}
	return knob
}

// parsed is a number, or infinity for a text.
func parsed(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return math.Inf(1)
	}
	return v
}

func below(setting, base string) bool {
	a, err1 := strconv.ParseFloat(setting, 64)
	b, err2 := strconv.ParseFloat(base, 64)
	return err1 == nil && err2 == nil && a < b
}
