package whatif

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/traces"
)

// Result is the result of a study.
type Result struct {
	Format int     `json:"format"`
	Name   string  `json:"name"`
	Metric string  `json:"metric"`
	Label  string  `json:"label"` // with the unit
	Higher bool    `json:"higher_is_better"`
	Cases  []*Case `json:"cases"`
	// Notes list the values of default knobs that the configuration refuses, and the accuracy of
	// goodput.
	Notes []string `json:"notes"`

	config []config.Point
}

// Case is one server of the configuration, at one rate if the metric comes from runs.
type Case struct {
	Name       string        `json:"name"`
	System     string        `json:"system"`
	Model      string        `json:"model"`
	GPU        string        `json:"gpu"`
	Rate       float64       `json:"rate,omitempty"`     // requests/s, or
	Sessions   bool          `json:"sessions,omitempty"` // sessions/s
	Seeds      []uint64      `json:"seeds"`
	Requests   int           `json:"requests"` // a run
	SLO        string        `json:"slo"`
	Base       Value         `json:"base"`
	Knobs      []*KnobResult `json:"knobs"`
	Heat       *HeatMap      `json:"heat,omitempty"`
	Thresholds []*Crossing   `json:"thresholds,omitempty"`
}

// Load returns the rate in words; "" if there is none.
func (c *Case) Load() string {
	switch {
	case c.Rate == 0:
		return ""
	case c.Sessions:
		return fmt.Sprintf("%g sessions/s", c.Rate)
	}
	return fmt.Sprintf("%g req/s", c.Rate)
}

// KnobResult is the effect of a knob on a case.
type KnobResult struct {
	Knob   string   `json:"knob"`
	About  string   `json:"about"`
	Keys   []string `json:"keys"`
	Factor bool     `json:"factor"`
	Base   string   `json:"base"` // in the configuration
	Points []Change `json:"points"`
}

// Change is the effect of one value of a knob.
type Change struct {
	Setting string `json:"setting"`
	Value
	// Change is the relative change of the value from the configuration's own. Low and High are the
	// ends of Student's t interval over the changes per seed; a seed has the same arrivals before and
	// after. They are nil for fewer than three seeds.
	Change float64  `json:"change"`
	Low    *float64 `json:"change_low"`
	High   *float64 `json:"change_high"`
}

// HeatMap has one row per value of B and one column per value of A.
type HeatMap struct {
	A       string   `json:"a"`
	B       string   `json:"b"`
	FactorA bool     `json:"factor_a"`
	FactorB bool     `json:"factor_b"`
	ValuesA []string `json:"values_a"`
	ValuesB []string `json:"values_b"`
	// Cells are the values; nil if no request was served.
	Cells [][]*float64 `json:"cells"`
}

// caseOf describes a server of the configuration.
func (s *Study) caseOf(one *subject) *Case {
	p := &one.Point
	c := &Case{Name: p.SystemLabel(), System: p.System.Name, Model: p.Model, GPU: p.GPU,
		Rate: p.Workload.MeanRate(), Sessions: p.Workload.Trace == traces.Sessions,
		Seeds: one.Seeds, Requests: traces.Count(p.Workload), Knobs: []*KnobResult{}}
	if bounds, err := p.Bounds(); err == nil {
		c.SLO = p.SLO.String(bounds)
	}
	return c
}

// fill stores the values of a case's variants, given in their order.
func (s *Study) fill(out *Result, c *Case, index int, values []Value) {
	knobs := map[string]*KnobResult{}
	for i := range s.ranges {
		k := &s.ranges[i].Knob
		r := &KnobResult{Knob: k.Name, About: k.About, Keys: k.Keys, Factor: k.Factor,
			Base: k.has(&s.cases[index].Point)}
		knobs[k.Name] = r
		c.Knobs = append(c.Knobs, r)
	}
	if len(s.heat) > 0 {
		a, b, steps := &s.heat[0], &s.heat[1], cmp.Or(s.Steps, HeatSteps)
		c.Heat = &HeatMap{A: a.Knob.Name, B: b.Knob.Name, FactorA: a.Knob.Factor, FactorB: b.Knob.Factor,
			ValuesA: a.At(steps), ValuesB: b.At(steps)}
		for range c.Heat.ValuesB {
			c.Heat.Cells = append(c.Heat.Cells, make([]*float64, len(c.Heat.ValuesA)))
		}
	}
	for i := range s.variants {
		v := &s.variants[i]
		value := values[i*len(s.cases)+index]
		if v.row >= 0 {
			if !value.none {
				c.Heat.Cells[v.row][v.column] = &value.Value
			}
			continue
		}
		if value.none {
			out.Notes = append(out.Notes, fmt.Sprintf("%s with %s = %s serves no request, so it has no %s",
				c.Name, v.knobs[0].Name, v.values[0], s.metric.Name))
			continue
		}
		k := knobs[v.knobs[0].Name]
		k.Points = append(k.Points, changeOf(v.values[0], value, &c.Base))
	}
	c.Knobs = slices.DeleteFunc(c.Knobs, func(k *KnobResult) bool { return len(k.Points) == 0 })
}

// leastSeeds is the minimum number of seeds for an interval.
const leastSeeds = 3

// confidence is the confidence level of the intervals.
const confidence = 0.95

func changeOf(setting string, v Value, base *Value) Change {
	c := Change{Setting: setting, Value: v, Change: relative(v.Value, base.Value)}
	if n := len(v.Seeds); n < leastSeeds || n != len(base.Seeds) {
		return c
	}
	var changes []float64
	for i := range v.Seeds {
		changes = append(changes, relative(v.Seeds[i], base.Seeds[i]))
	}
	low, high := tInterval(changes)
	c.Low, c.High = &low, &high
	return c
}

// relative returns the relative change between two values; 0 if the base is 0.
func relative(to, from float64) float64 {
	if from == 0 {
		return 0
	}
	return to/from - 1
}

// has returns the knob's value on a server.
func (k *Knob) has(p *config.Point) string {
	if k.Factor {
		return "1"
	}
	v, ok := p.Field(k.Keys[0])
	if !ok {
		return ""
	}
	return strings.Trim(config.Show(v.Interface()), `"`)
}

// Sorted lists the knobs, largest effect first.
func (c *Case) Sorted() []*KnobResult {
	effect := func(k *KnobResult) float64 {
		low, high := 0.0, 0.0
		for _, p := range k.Points {
			low, high = math.Min(low, p.Change), math.Max(high, p.Change)
		}
		return high - low
	}
	knobs := slices.Clone(c.Knobs)
	slices.SortStableFunc(knobs, func(a, b *KnobResult) int {
		return cmp.Compare(effect(b), effect(a))
	})
	return knobs
}
