package pattern

// KeptLines is how many of the first columns and of the nearest diagonals a vertical-slash head
// keeps whatever its estimate says, as MInference's kernels do.
const KeptLines = 30

// Heads returns what each query head does, by layer. A file says so itself. A published mix has
// counts and no order: each layer has its shares as nearly as whole heads can, what earlier layers
// had too little of first, and heads of one kind stand together. Nil is dense: no layers.
func (m *Mix) Heads(layers, heads int) [][]Head {
	if m == nil {
		return nil
	}
	out := make([][]Head, layers)
	var due []float64 // heads that each group lacks so far
	for layer := range out {
		out[layer] = make([]Head, 0, heads)
		if m.order != nil {
			for _, a := range m.order[layer] {
				out[layer] = append(out[layer], a.Head)
			}
			continue
		}
		groups := m.Layer(layer)
		if due == nil {
			due = make([]float64, len(groups))
		}
		out[layer] = whole(out[layer], groups, due, heads)
	}
	return out
}

// whole appends a layer's heads, and leaves in due what its groups still lack.
func whole(to []Head, groups []Group, due []float64, heads int) []Head {
	given := make([]int, len(groups))
	for i := range groups {
		due[i] += groups[i].Heads
	}
	for range heads {
		most := 0
		for i := range due {
			if due[i] > due[most] {
				most = i
			}
		}
		due[most]--
		given[most]++
	}
	for i, n := range given {
		for range n {
			to = append(to, groups[i].Head)
		}
	}
	return to
}
