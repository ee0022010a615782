package reference

// Prefill is causal attention of one request: query i sees keys 0 to Prefix + i. Q is
// [QTokens][HeadsQ][Dim], K and V [Prefix + QTokens][HeadsKV][Dim].
type Prefill struct {
	Shape   // Batch is not used
	Q, K, V []float64
	QTokens int
	Prefix  int
	Scale   float64
}

// Run returns out [QTokens][HeadsQ][Dim].
func (p *Prefill) Run() []float64 {
	out := make([]float64, p.QTokens*p.HeadsQ*p.Dim)
	for i := range p.QTokens {
		p.Row(i, out[i*p.HeadsQ*p.Dim:])
	}
	return out
}

// Row computes query i: out [HeadsQ][Dim].
func (p *Prefill) Row(i int, out []float64) {
	for head := range p.HeadsQ {
		query := p.Q[(i*p.HeadsQ+head)*p.Dim:][:p.Dim]
		state := NewSoftmax(p.Dim)
		for t := range p.Prefix + i + 1 {
			at := (t*p.HeadsKV + head/p.Group()) * p.Dim
			state.Add(p.Scale*dot(query, p.K[at:]), p.V[at:at+p.Dim])
		}
		state.Result(out[head*p.Dim : (head+1)*p.Dim])
	}
}
