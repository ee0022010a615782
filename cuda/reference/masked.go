package reference

// Masked is dense attention under a mask: query i of a head attends to the keys for which Sees
// holds, with their multiplicity. Prefix and shapes are as in Prefill.
type Masked struct {
	Prefill
	Sees func(head, query, key int) int
}

// Row computes query i: out [HeadsQ][Dim]; zeros if it attends to no key.
func (m *Masked) Row(i int, out []float64) {
	for head := range m.HeadsQ {
		query := m.Q[(i*m.HeadsQ+head)*m.Dim:][:m.Dim]
		state := NewSoftmax(m.Dim)
		for key := range m.Prefix + m.QTokens {
			at := (key*m.HeadsKV + head/m.Group()) * m.Dim
			for range m.Sees(head, i, key) {
				state.Add(m.Scale*dot(query, m.K[at:]), m.V[at:at+m.Dim])
			}
		}
		state.Result(out[head*m.Dim : (head+1)*m.Dim])
	}
}

// Run returns out [QTokens][HeadsQ][Dim].
func (m *Masked) Run() []float64 {
	out := make([]float64, m.QTokens*m.HeadsQ*m.Dim)
	for i := range m.QTokens {
		m.Row(i, out[i*m.HeadsQ*m.Dim:])
	}
	return out
}
