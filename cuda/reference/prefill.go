package reference

// Shape is the head layout of a batch: query head h belongs to KV head h / Group.
type Shape struct {
	Batch, HeadsQ, HeadsKV, Dim int
}

// Group returns the query heads of one KV head.
func (s Shape) Group() int { return s.HeadsQ / s.HeadsKV }

// Units returns the number of (request, KV head) pairs.
func (s Shape) Units() int { return s.Batch * s.HeadsKV }

// Prefill is attention of one request: query i sees keys 0 to Prefix + i, or under a mask the keys
// for which Sees holds, with their multiplicity. Q is [QTokens][HeadsQ][Dim], K and V [Prefix +
// QTokens][HeadsKV][Dim].
type Prefill struct {
	Shape   // Batch is not used
	Q, K, V []float64
	QTokens int
	Prefix  int
	Scale   float64
	Sees    func(head, query, key int) int // nil: causal
}

// Run returns out [QTokens][HeadsQ][Dim].
func (p *Prefill) Run() []float64 {
	out := make([]float64, p.QTokens*p.HeadsQ*p.Dim)
	for i := range p.QTokens {
		p.Row(i, out[i*p.HeadsQ*p.Dim:])
	}
	return out
}

// Row computes query i: out [HeadsQ][Dim]; zeros if it attends to no key.
func (p *Prefill) Row(i int, out []float64) {
	sees := p.Sees
	if sees == nil {
		sees = func(_, query, key int) int { return max(0, min(1, p.Prefix+query+1-key)) }
	}
	for head := range p.HeadsQ {
		query := p.Q[(i*p.HeadsQ+head)*p.Dim:][:p.Dim]
		state := NewSoftmax(p.Dim)
		for t := range p.Prefix + p.QTokens {
			at := (t*p.HeadsKV + head/p.Group()) * p.Dim
			for range sees(head, i, t) {
				state.Add(p.Scale*dot(query, p.K[at:]), p.V[at:at+p.Dim])
			}
		}
		state.Result(out[head*p.Dim : (head+1)*p.Dim])
	}
}
