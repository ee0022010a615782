package papers

import (
	"cmp"
	_ "embed"
	"maps"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/internal/doc"
)

// SystemName returns the name of a system in the papers.
func SystemName(system string) string {
	if name, ok := figuresBook().Systems[system]; ok {
		return name
	}
	if variant, ok := strings.CutPrefix(system, "sparseserve-"); ok {
		return "SparseServe-" + variant
	}
	return system
}

// ModelName returns the name of a model in the papers.
func ModelName(model string) string { return cmp.Or(figuresBook().Models[model], model) }

// Phase is one phase of a step's time.
type Phase struct {
	Key   string // of metrics.Summary.PhaseS
	Name  string
	Color string // #rrggbb
}

// Phases returns the phases in stacking order of bars.
func Phases() []Phase { return slices.Clone(figuresBook().Phase) }

// Paint colours lines and parts of bars: one name has one colour in all charts, and the four
// systems of the SparseServe paper have fixed colours in every figure. own maps names to numbers of
// fixed colours.
func Paint(charts []*doc.Chart, own map[string]int) {
	looks := map[string]int{"vLLM": 0, "vLLM-S": 1, "vLLM-SO": 2, "SparseServe": 3}
	fixed, next := len(looks), 0
	eachSeries(charts, func(name string, _ *string, _ *bool) {
		_, known := looks[name]
		if _, set := own[name]; known && !set {
			next = fixed
		}
	})
	maps.Copy(looks, own)
	colors := map[string]string{doc.Published: doc.Grey}
	for _, p := range Phases() {
		colors[p.Name] = p.Color
	}
	eachSeries(charts, func(name string, color *string, dashed *bool) {
		n, known := looks[name]
		if !known && colors[name] != "" {
			*color, *dashed = colors[name], false
			return
		}
		if !known {
			n, looks[name] = next, next
			next++
		}
		*color, *dashed = doc.Color(n)
		*dashed = *dashed && !charts[0].Low // dashes do not show on a dense time line
	})
}

// eachSeries calls do with the name and the look of each line and each part of a bar. Parts have no
// dashes.
func eachSeries(charts []*doc.Chart, do func(name string, color *string, dashed *bool)) {
	for _, c := range charts {
		for i := range c.Lines {
			l := &c.Lines[i]
			do(l.Name, &l.Color, &l.Dashed)
		}
		for i := range c.Bars {
			for j := range c.Bars[i].Parts {
				p := &c.Bars[i].Parts[j]
				do(p.Name, &p.Color, new(bool))
			}
		}
	}
}

//go:embed prefill_accuracy.toml
var prefillAccuracyTOML string

// Accuracy is the content of prefill_accuracy.toml, from the MInference paper.
type Accuracy struct {
	Tasks  map[string][]string // columns of a benchmark's table
	Scores []Scores
}

// Scores are the results of one prefill method in one table, %.
type Scores struct {
	Where, Benchmark, Model, Variant string
	Prefill                          string // value of prefill.attention
	Values                           []float64
}

// PrefillAccuracy returns the accuracy that the MInference paper reports.
func PrefillAccuracy() *Accuracy {
	var a Accuracy
	decode("prefill_accuracy.toml", prefillAccuracyTOML, &a)
	return &a
}

// Mean returns the mean of the scores.
func (s *Scores) Mean() float64 { return mean(s.Values) }
