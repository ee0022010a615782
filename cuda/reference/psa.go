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

// PSAResult is the answer of a run. Margin[u] is the least distance of any P_acc from Epsilon seen
// by unit u: below the rounding of a lower-precision implementation, that one may rightly stop
// elsewhere.
type PSAResult struct {
	Out    []float64 // [batch][heads q][dim]
	Used   []int32   // [units] blocks attended to
	Margin []float64
}

// Run carries the algorithm out.
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
	group := p.Group()
	acc := make([]Softmax, group)
	least := make([]float64, group) // log AS_min
	for g := range group {
		acc[g], least[g] = NewSoftmax(p.Dim), math.Inf(1)
	}
	margin = math.Inf(1)
	blocks := p.Order[unit*p.OrderStride:][:p.Count[unit]]
	for done := false; !done && int(used) < len(blocks); {
		for _, block := range blocks[used:min(int(used)+p.Micro, len(blocks))] {
			for g := range group {
				head := unit*group + g
				one := NewSoftmax(p.Dim)
				p.attend(p.Shape, unit, block, p.Q[head*p.Dim:(head+1)*p.Dim], p.Scale, &one)
				acc[g].Merge(one)
				least[g] = math.Min(least[g], one.Max+math.Log(one.Sum))
			}
			used++
		}
		left := float64(len(blocks) - int(used))
		done = true
		for g := range group {
			weight := acc[g].Sum / (acc[g].Sum + math.Exp(least[g]-acc[g].Max)*left)
			margin = math.Min(margin, math.Abs(weight-p.Epsilon))
			done = done && weight > p.Epsilon
		}
	}
	for g := range group {
		acc[g].Result(out[g*p.Dim : (g+1)*p.Dim])
	}
	return used, margin
}
