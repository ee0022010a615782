package pattern

// KeptLines is the number of first columns and of nearest diagonals that a vertical-slash head
// always keeps, as in MInference's kernels.
const KeptLines = 30

// Heads returns the head of each query head, by layer. A file lists the heads. A published mix
// has only counts, so each layer gets whole heads that approximate the shares; groups that
// received too few heads in earlier layers come first. Heads of one group are adjacent. A nil
// mix is dense and returns nil.
func (m *Mix) Heads(layers, heads int) [][]Head {
	if m == nil {
		return nil
	}
	out := make([][]Head, layers)
	var due []float64 // heads owed to each group so far
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

// whole appends a layer's heads and updates due, the heads still owed to each group.
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
