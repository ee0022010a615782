package papers

import (
	"strings"

	"github.com/sparseserve/sparseserve/internal/doc"
)

// SystemName returns the name of a system in the papers.
func SystemName(system string) string {
	if name, ok := map[string]string{
		"vllm": "vLLM", "vllm-s": "vLLM-S", "vllm-so": "vLLM-SO", "sparseserve": "SparseServe",
		"vllm-so-ft": "vLLM-SO+FT", "vllm-so-ft-wc": "vLLM-SO+FT+WC",
		"vllm-sparse": "vLLM-sparse", "vllm-psa": "PSA", "sparseserve-psa": "SparseServe+PSA",
		"vllm-minference": "vLLM+MInference", "sparseserve-minference": "SparseServe+MInference",
	}[system]; ok {
		return name
	}
	if variant, ok := strings.CutPrefix(system, "sparseserve-"); ok {
		return "SparseServe-" + variant
	}
	return system
}

// ModelName returns the name of a model in the papers.
func ModelName(model string) string {
	if name, ok := map[string]string{"lwm-7b": "LWM-7B", "llama2-7b": "Llama-2-7B",
		"llama3-8b": "Llama3-8B", "llama3.1-8b": "Llama-3.1-8B"}[model]; ok {
		return name
	}
	return model
}

// Phase is one phase of a step's time.
type Phase struct {
	Key   string // of sim.Summary.PhaseS
	Name  string
	Color string // #rrggbb
}

// Phases returns the phases in stacking order of bars.
func Phases() []Phase {
	return []Phase{
		{"linears", "linears", "#2b4c7e"},
		{"prefill_attention", "prefill attention", "#8fb4d9"},
		{"prefill_index", "index of sparse prefill", "#5f86ab"},
		{"dense_attention", "dense attention", "#569a7a"},
		{"sparse_attention", "sparse attention", "#b5ddb0"},
		{"scoring", "scoring", "#f2e28a"},
		{"load_stall", "loads, exposed", "#c62f1f"},
		{"save_stall", "saves, exposed", "#f0a090"},
		{"head", "LM head", "#a0609a"},
		{"all_reduce", "all-reduce", "#d9a65c"},
		{"host", "host", "#c8c8c8"},
		{"unsplit", "steps not split", "#ffffff"},
	}
}

// Paint colours lines and parts of bars: one name has one colour in all charts, and the four
// systems of the SparseServe paper have fixed colours in every figure. own maps names to numbers of
// fixed colours.
func Paint(charts []*doc.Chart, own map[string]int) {
	looks := map[string]int{"vLLM": 0, "vLLM-S": 1, "vLLM-SO": 2, "SparseServe": 3}
	fixed := len(looks)
	next := 0
	names := seriesOf(charts)
	for _, name := range names {
		if _, ok := own[name]; ok {
			looks[name] = own[name]
		} else if _, ok := looks[name]; ok {
			next = fixed
		}
	}
	colors := map[string]string{doc.Published: doc.Grey}
	for _, p := range Phases() {
		colors[p.Name] = p.Color
	}
	for _, name := range names {
		_, known := looks[name]
		if colors[name] == "" && !known {
			looks[name] = next
			next++
		}
	}
	of := func(name string) (color string, dashed bool) {
		if n, ok := looks[name]; ok {
			return doc.Color(n)
		}
		return colors[name], false
	}
	for _, c := range charts {
		for i := range c.Lines {
			l := &c.Lines[i]
			l.Color, l.Dashed = of(l.Name)
		}
		for i := range c.Bars {
			for j := range c.Bars[i].Parts {
				p := &c.Bars[i].Parts[j]
				p.Color, _ = of(p.Name)
			}
		}
	}
}

// seriesOf lists the names of lines and of bar parts, each once.
func seriesOf(charts []*doc.Chart) (names []string) {
	known := map[string]bool{}
	add := func(name string) {
		if !known[name] {
			known[name], names = true, append(names, name)
		}
	}
	for _, c := range charts {
		for i := range c.Lines {
			add(c.Lines[i].Name)
		}
		for i := range c.Bars {
			for j := range c.Bars[i].Parts {
				add(c.Bars[i].Parts[j].Name)
			}
		}
	}
	return names
}
