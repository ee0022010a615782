package report

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/whatif"
	"github.com/sparseserve/sparseserve/figures"
	"github.com/sparseserve/sparseserve/internal/warn"
)

// effect is what one value of a knob does, in % of what there is.
type effect struct {
	Name   string   `json:"name"`
	Value  float64  `json:"value"`
	Change float64  `json:"change"`
	Low    *float64 `json:"low,omitempty"`
	High   *float64 `json:"high,omitempty"`
	Below  bool     `json:"below,omitempty"` // is set below what there is
}

// heat is a heat map; cells without a value are left out.
type heat struct {
	A       string     `json:"a"`
	B       string     `json:"b"`
	ValuesA []string   `json:"valuesA"`
	ValuesB []string   `json:"valuesB"`
	Cells   []heatCell `json:"cells"`
	Higher  bool       `json:"higher"`
}

type heatCell struct {
	X      int     `json:"x"`
	Y      int     `json:"y"`
	Value  float64 `json:"value"`
	Change float64 `json:"change"` // %
}

// readWhatIf makes the page of a what-if.
func readWhatIf(dir string) (*page, error) {
	var w whatif.Result
	if err := readJSON(dir, whatif.ResultFile, &w); err != nil {
		return nil, err
	}
	if len(w.Cases) == 0 {
		return nil, fmt.Errorf("%s: no case", filepath.Join(dir, whatif.ResultFile))
	}
	p := &page{Title: nameOf(dir) + ": what-if"}
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
	if _, err := p.restOn([]string{dir}); err != nil {
		return nil, err
	}
	p.addFile(filepath.Join(dir, "config.toml"), "config.toml")
	return p, nil
}

func (p *page) addCase(w *whatif.Result, c *whatif.Case) {
	name := c.Name
	if load := c.Load(); load != "" {
		name += " at " + load
	}
	name += ", " + digits(c.Base.Value)
	if len(c.Knobs) > 0 {
		drawn, t := tornado(w, c)
		p.Sections = append(p.Sections, section{Title: "Each knob by itself: " + name,
			Charts: []*chart{drawn}})
		t.Title = "Knobs: " + c.Name
		p.Tables = append(p.Tables, t)
	}
	if c.Heat != nil {
		p.Sections = append(p.Sections, section{Title: "Two knobs together: " + name,
			Note: "Blue is better than what there is, red worse.", Charts: []*chart{heatOf(w, c)}})
	}
	for _, x := range c.Thresholds {
		t := table{Title: x.Name + ": " + c.Name, Note: "Every value that was looked at.",
			Header: []string{x.Knob, "answer", "value", "against"}, Right: 2, Folded: true}
		tried := slices.Clone(x.Tried)
		slices.SortFunc(tried, func(a, b whatif.Answer) int {
			return cmp.Compare(parsed(a.Setting), parsed(b.Setting))
		})
		for _, a := range tried {
			t.Rows = append(t.Rows, []string{a.Setting, string(a.Verdict), digits(a.Value),
				digits(a.Against)})
		}
		p.Tables = append(p.Tables, t)
	}
}

// tornado has the knobs of the most effect first.
func tornado(w *whatif.Result, c *whatif.Case) (*chart, table) {
	out := &chart{Kind: "effects", Chart: figures.Chart{X: "change of " + w.Label, Y: "change of " +
		w.Label + ", %"}}
	t := table{Header: []string{"knob", "has", "value", w.Metric, "change %", "95 % interval",
		"limited by"}, Right: 1}
	var keys []string
	for _, k := range c.Sorted() {
		keys = append(keys, k.Knob+": "+strings.Join(k.Keys, ", "))
		for _, q := range k.Points {
			value, has := q.Setting, k.Base
			if k.Factor {
				value, has = "x "+value, "x "+has
			}
			e := effect{Name: k.Knob + " " + value, Value: q.Value.Value, Change: 100 * q.Change,
				Below: below(q.Setting, k.Base)}
			interval := "-"
			if q.Low != nil && q.High != nil {
				low, high := 100**q.Low, 100**q.High
				e.Low, e.High = &low, &high
				interval = percent(*q.Low) + " to " + percent(*q.High)
			}
			out.Effects = append(out.Effects, e)
			t.Rows = append(t.Rows, []string{k.Knob, has, value, digits(q.Value.Value),
				percent(q.Change), interval, q.LimitedBy})
		}
	}
	t.Note = "What each sets: " + strings.Join(keys, "; ") + "."
	return out, t
}

func heatOf(w *whatif.Result, c *whatif.Case) *chart {
	h := c.Heat
	out := &heat{A: named(h.A, h.FactorA), B: named(h.B, h.FactorB), ValuesA: h.ValuesA,
		ValuesB: h.ValuesB, Higher: w.Higher}
	for y, row := range h.Cells {
		for x, v := range row {
			if v == nil {
				continue
			}
			cell := heatCell{X: x, Y: y, Value: *v}
			if c.Base.Value != 0 {
				cell.Change = 100 * (*v/c.Base.Value - 1)
			}
			out.Cells = append(out.Cells, cell)
		}
	}
	return &chart{Kind: "heat", Chart: figures.Chart{Y: w.Label}, Heat: out}
}

func named(knob string, factor bool) string {
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
