package pattern

import (
	"fmt"
	"slices"
)

// Group is the heads of a layer that have one pattern. Heads is fractional if a mix is
// published as counts over all layers.
type Group struct {
	Head
	Heads float64
}

// Mix is the patterns of a model's heads in prefill. Nil is dense.
type Mix struct {
	layers [][]Group // one for all layers, or one per layer
	order  Table     // heads in order, if read from a file
}

// Layer returns the groups of a layer, always the same slice for the same layer.
func (m *Mix) Layer(layer int) []Group {
	if m == nil {
		return nil
	}
	if len(m.layers) == 1 {
		return m.layers[0]
	}
	return m.layers[layer]
}

// Layers returns the number of layers, or 1 if all layers are equal.
func (m *Mix) Layers() int { return len(m.layers) }

// Split returns the mean share per GPU of the mix if n GPUs share a layer's heads.
func (m *Mix) Split(n int) *Mix {
	if m == nil || n <= 1 {
		return m
	}
	out := &Mix{layers: make([][]Group, len(m.layers))}
	for i, groups := range m.layers {
		out.layers[i] = slices.Clone(groups)
		for j := range groups {
			out.layers[i][j].Heads /= float64(n)
		}
	}
	return out
}

// Uniform returns a mix in which all heads have one pattern, or an error if its sizes are
// invalid.
func Uniform(h Head, heads int) (*Mix, error) {
	if err := h.check(); err != nil {
		return nil, err
	}
	return &Mix{layers: [][]Group{{{h, float64(heads)}}}}, nil
}

// namedMix is a published mix: the number of a model's heads with each pattern and sizes.
type namedMix struct {
	name   string
	groups []Group
}

// named are the published mixes. In the files of MInference's repository nearly all heads are
// vertical-slash. The counts of Fig. 11, which have all three patterns, are not published.
var named = []namedMix{
	// from Llama-3-8B-Instruct-262k, also used for runs with 1M tokens
	{"llama3-8b-262k", []Group{
		{Head{VerticalSlash, 1000, 6096}, 473},
		{Head{VerticalSlash, 30, 800}, 278},
		{Head{VerticalSlash, 100, 800}, 153},
		{Head{VerticalSlash, 3500, 100}, 89},
		{Head{VerticalSlash, 500, 700}, 31},
	}},
}

// Named returns a published mix for layers with the given number of query heads. Each layer has
// the shares of the whole model.
func Named(name string, heads int) (*Mix, error) {
	groups, all := Counts(name), 0.0
	if groups == nil {
		return nil, fmt.Errorf("no published mix %q; there is %s", name, NamedMixes())
	}
	for _, g := range groups {
		all += g.Heads
	}
	for i := range groups {
		groups[i].Heads *= float64(heads) / all
	}
	return &Mix{layers: [][]Group{groups}}, nil
}

// Counts returns the head counts of a mix as published, or nil if there is no such mix.
func Counts(name string) []Group {
	for _, n := range named {
		if n.name == name {
			return slices.Clone(n.groups)
		}
	}
	return nil
}

// NamedMixes lists the published mixes.
func NamedMixes() (names []string) {
	for _, n := range named {
		names = append(names, n.name)
	}
	return names
}
