package pattern

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/sparseserve/sparseserve/internal/files"
)

// fileKinds maps the published pattern names in files to kinds.
var fileKinds = []struct {
	name string
	kind Kind
}{{"stream_llm", AShape}, {"vertical_and_slash", VerticalSlash}, {"block_sparse", BlockSparse}}

// Assigned is a head in a file: its pattern, and the score that the search computed for it.
type Assigned struct {
	Head
	Score float64
}

// Table is the content of a pattern file: the heads of each layer.
type Table [][]Assigned

// Parse reads a file in MInference's format: a list, by layer, of objects {"head": [pattern,
// first size, second size, score]}. name is used in errors.
func Parse(name string, text []byte) (Table, error) {
	var layers []map[string][]json.RawMessage
	if err := files.ParseJSON(name, text, &layers); err != nil {
		return nil, fmt.Errorf(`%w; want a list by layer of {"head": [pattern, size, size, score]}`, err)
	}
	if len(layers) == 0 {
		return nil, fmt.Errorf("%s: no layers", name)
	}
	t := make(Table, len(layers))
	for layer, heads := range layers {
		if len(heads) == 0 {
			return nil, fmt.Errorf("%s: layer %d has no heads", name, layer)
		}
		if layer > 0 && len(heads) != len(t[0]) {
			return nil, fmt.Errorf("%s: layer %d has %d heads, layer 0 has %d",
				name, layer, len(heads), len(layers[0]))
		}
		t[layer] = make([]Assigned, len(heads))
		for key, cells := range heads {
			i, err := strconv.Atoi(key)
			if err != nil || strconv.Itoa(i) != key || i < 0 || i >= len(heads) {
				return nil, fmt.Errorf("%s: layer %d, head %q: want heads 0 to %d",
					name, layer, key, len(heads)-1)
			}
			if t[layer][i], err = parseHead(cells); err != nil {
				return nil, fmt.Errorf("%s: layer %d, head %d: %w", name, layer, i, err)
			}
		}
	}
	return t, nil
}

func parseHead(cells []json.RawMessage) (a Assigned, err error) {
	if len(cells) != 4 {
		return a, fmt.Errorf("want pattern, two sizes and a score, got %d values", len(cells))
	}
	var kind string
	if err := json.Unmarshal(cells[0], &kind); err != nil {
		return a, fmt.Errorf("pattern %s: want a name", cells[0])
	}
	i := slices.IndexFunc(fileKinds, func(k struct {
		name string
		kind Kind
	}) bool {
		return k.name == kind
	})
	if i < 0 {
		return a, fmt.Errorf("unknown pattern %q; use stream_llm, vertical_and_slash or block_sparse",
			kind)
	}
	a.Kind = fileKinds[i].kind
	for n, size := range []*int{&a.A, &a.B} {
		if err := json.Unmarshal(cells[n+1], size); err != nil {
			return a, fmt.Errorf("%s: size %s: want an integer", kind, cells[n+1])
		}
	}
	if err := json.Unmarshal(cells[3], &a.Score); err != nil {
		return a, fmt.Errorf("%s: score %s: want a number", kind, cells[3])
	}
	return a, a.check()
}

// Encode writes the file format that Parse reads, one layer per line.
func (t Table) Encode() []byte {
	var out bytes.Buffer
	out.WriteString("[")
	for layer, heads := range t {
		if layer > 0 {
			out.WriteString(",\n ")
		}
		out.WriteString("{")
		for i, a := range heads {
			if i > 0 {
				out.WriteString(", ")
			}
			name := ""
			for _, k := range fileKinds {
				if k.kind == a.Kind {
					name = k.name
				}
			}
			score := strconv.FormatFloat(a.Score, 'g', -1, 64)
			fmt.Fprintf(&out, "\"%d\": [%q, %d, %d, %s]", i, name, a.A, a.B, score)
		}
		out.WriteString("}")
	}
	out.WriteString("]\n")
	return out.Bytes()
}

// Mix returns the mix of a table. It fails if the table does not have the given numbers of
// layers and query heads. name is used in errors.
func (t Table) Mix(name string, layers, heads int) (*Mix, error) {
	if len(t) != layers {
		return nil, fmt.Errorf("%s: layers: has %d, the model has %d", name, len(t), layers)
	}
	if len(t[0]) != heads {
		return nil, fmt.Errorf("%s: layer 0: has %d heads, the model has %d query heads",
			name, len(t[0]), heads)
	}
	m := &Mix{layers: make([][]Group, layers), order: t}
	for layer := range t {
		m.layers[layer] = t[layer : layer+1].Groups()
	}
	return m, nil
}

// Groups counts the heads by pattern, the most frequent first.
func (t Table) Groups() (groups []Group) {
	for _, heads := range t {
		for _, a := range heads {
			i := slices.IndexFunc(groups, func(g Group) bool { return g.Head == a.Head })
			if i < 0 {
				i = len(groups)
				groups = append(groups, Group{Head: a.Head})
			}
			groups[i].Heads++
		}
	}
	slices.SortStableFunc(groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Heads, a.Heads), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.A, b.A), cmp.Compare(a.B, b.B))
	})
	return groups
}
