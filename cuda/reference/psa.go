package reference

import "math"

// Progress is a unit's run of Algorithm 1 of "Progressive Sparse Attention" so far: the softmax and
// log AS_min of each query head. A unit attends to some blocks, checks if it is Enough, and goes
// on.
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
