package pattern

import (
	"fmt"
	"slices"
)

// Group is heads of a layer that have one pattern. Their number is no integer where a mix is
// published as counts over all layers.
type Group struct {
	Head
	Heads float64
}

// Mix is what the heads of a model do in prefill. Nil is dense.
type Mix struct {
	layers [][]Group // one for all layers, or one each
	order  Table     // of a file: the heads themselves
}

// Layer returns the groups of a layer; they are the same slice for the same layer.
func (m *Mix) Layer(layer int) []Group {
	if m == nil {
		return nil
	}
	if len(m.layers) == 1 {
		return m.layers[0]
	}
	return m.layers[layer]
}

// Layers returns the number of layers, 1 where all are alike.
func (m *Mix) Layers() int { return len(m.layers) }

// Split returns what each of n GPUs has of the mix where they share a layer's heads: the mean.
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

// Uniform returns a mix of one pattern.
func Uniform(h Head, heads int) (*Mix, error) {
	if err := h.check(); err != nil {
		return nil, err
	}
	return &Mix{layers: [][]Group{{{h, float64(heads)}}}}, nil
}

// namedMix is a published mix: how many heads of a model have which sizes.
type namedMix struct {
	name   string
	groups []Group
}

// named are the published mixes. MInference's repository has turned nearly all heads into
// vertical-slash in the files that it publishes; Fig. 11's counts, which have all three patterns,
// are published nowhere.
var named = []namedMix{
	// of Llama-3-8B-Instruct-262k, which 1M tokens are run with, too
	{"llama3-8b-262k", []Group{
		{Head{VerticalSlash, 1000, 6096}, 473},
		{Head{VerticalSlash, 30, 800}, 278},
		{Head{VerticalSlash, 100, 800}, 153},
		{Head{VerticalSlash, 3500, 100}, 89},
		{Head{VerticalSlash, 500, 700}, 31},
	}},
}

// Named returns a published mix for layers of so many query heads, each with the shares of the
// whole model.
func Named(name string, heads int) (*Mix, error) {
	for _, n := range named {
		if n.name != name {
			continue
		}
		groups := slices.Clone(n.groups)
		all := 0.0
		for _, g := range groups {
			all += g.Heads
		}
		for i := range groups {
			groups[i].Heads *= float64(heads) / all
		}
		return &Mix{layers: [][]Group{groups}}, nil
	}
	return nil, fmt.Errorf("no published mix %q; there is %s", name, NamedMixes())
}

// Counts returns the head counts of a published mix, as published.
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
