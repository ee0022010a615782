package reference

import "math"

// PSA is Algorithm 1 of "Progressive Sparse Attention", for a batch and with microbatches: unit u
// attends to its Count[u] blocks in the order Order[u*OrderStride:], Micro at a time, and stops
// once every query head of its group has more than Epsilon of the estimated weight.
type PSA struct {
	Shape
	Cache
	Q           []float64
	Order       []int32
	OrderStride int
	Count       []int32
	Micro       int
	Scale       float64
	Epsilon     float64
}

// PSAResult is the result of a run. Margin[u] is the minimum distance of any P_acc from Epsilon in
// unit u. If it is below the rounding of a lower-precision implementation, that implementation may
// stop elsewhere.
type PSAResult struct {
	Out    []float64 // [batch][heads q][dim]
	Used   []int32   // [units] blocks attended to
	Margin []float64
}

// Run runs the algorithm.
func (p *PSA) Run() PSAResult {
	r := PSAResult{
		Out:    make([]float64, p.Batch*p.HeadsQ*p.Dim),
		Used:   make([]int32, p.Units()),
		Margin: make([]float64, p.Units()),
	}
	for unit := range p.Units() {
		r.Used[unit], r.Margin[unit] = p.unit(unit, r.Out[unit*p.Group()*p.Dim:])
	}
	return r
}

func (p *PSA) unit(unit int, out []float64) (used int32, margin float64) {
	progress, rows := NewProgress(p.Group(), p.Dim), p.Group()*p.Dim
	margin = math.Inf(1)
	blocks := p.Order[unit*p.OrderStride:][:p.Count[unit]]
	for done := false; !done && int(used) < len(blocks); {
		for _, block := range blocks[used:min(int(used)+p.Micro, len(blocks))] {
			keys, values := p.block(p.Shape, unit, block)
			progress.Add(p.Q[unit*rows:][:rows], keys, values, p.Scale)
			used++
		}
		var least float64
		done, least = progress.Enough(len(blocks)-int(used), p.Epsilon)
		margin = math.Min(margin, least)
	}
	progress.Result(out)
	return used, margin
}

// Progress is a unit's run so far: the softmax and log AS_min of each query head.
type Progress struct {
	Heads []Softmax
	Least []float64
}

// NewProgress returns a run without blocks.
func NewProgress(group, dim int) *Progress {
	p := &Progress{Heads: make([]Softmax, group), Least: make([]float64, group)}
	for g := range p.Heads {
		p.Heads[g], p.Least[g] = NewSoftmax(dim), math.Inf(1)
	}
	return p
}

// Add attends to one more block; q is [group][dim].
func (p *Progress) Add(q, keys, values []float64, scale float64) {
	dim := len(q) / len(p.Heads)
	for g := range p.Heads {
		one := NewSoftmax(dim)
		one.Attend(q[g*dim:][:dim], keys, values, scale)
		p.Heads[g].Merge(one)
		p.Least[g] = math.Min(p.Least[g], one.Max+math.Log(one.Sum))
	}
}

// Enough is the verifying step with left blocks remaining. It reports whether P_acc of every head
// exceeds epsilon, and the minimum distance of any P_acc from epsilon.
func (p *Progress) Enough(left int, epsilon float64) (done bool, margin float64) {
	done, margin = true, math.Inf(1)
	for g, h := range p.Heads {
		weight := h.Sum / (h.Sum + math.Exp(p.Least[g]-h.Max)*float64(left))
		margin = math.Min(margin, math.Abs(weight-epsilon))
		done = done && weight > epsilon
	}
	return done, margin
}

// Result writes the normalised output, [group][dim].
func (p *Progress) Result(out []float64) {
	for g := range p.Heads {
		dim := len(p.Heads[g].Out)
		p.Heads[g].Result(out[g*dim:][:dim])
	}
}
