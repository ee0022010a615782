package calibrate

import (
	"fmt"
	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/reference"
	"math"
)

const (
	normEps  = 1e-5
	ropeBase = 10000
)

func half(x float64) float64 { return cuda.HalfOf(x).Float() }

// row downloads one row of a dense fp16 tensor.
func rowOf(s *cuda.Session, at cuda.Ptr, row, width int64) ([]float64, error) {
	return floats(s, at+cuda.Ptr(2*row*width), width)
}

// setupPointwise readies the two norms, rope and the activation of one layer;
// rope writes K and V of a prompt's tokens to blocks anywhere.
func (g *gpuBench) setupPointwise(s *cuda.Session, p Point) (*setup, error) {
	m, err := shapeModel(p.Shape)
	if err != nil {
		return nil, err
	}
	n, d, hidden := p.At("tokens"), int64(m.HeadDim), int64(m.Hidden)
	heads, blocks := int64(m.QHeads+2*m.KVHeads), (n+blockTokens-1)/blockTokens
	norm := cuda.RMSNormArgs{Rows: int32(n), Hidden: int32(hidden), Eps: normEps}
	rope := &cuda.RopeArgs{Tokens: int32(n), HeadsQ: int32(m.QHeads), HeadsKV: int32(m.KVHeads), HeadDim: int32(d), BlockTokens: blockTokens, HeadStride: blocks}
	silu := &cuda.SiluMulArgs{Tokens: int32(n), FFN: int32(m.FFN)}
	slots, positions, turns := make([]int32, blocks*int64(m.KVHeads)), make([]int32, n), make([]float32, d/2)
	for i, slot := range g.r.Perm(len(slots)) {
		slots[i] = int32(slot)
	}
	for i := range positions {
		positions[i] = int32(i)
	}
	for i := range turns {
		turns[i] = float32(math.Pow(ropeBase, -2*float64(i)/float64(d)))
	}
	set := g.setter(&err)
	set(&norm.X, func() (cuda.Ptr, error) { return g.random(s, n*hidden) })
	set(&norm.Residual, func() (cuda.Ptr, error) { return g.random(s, n*hidden) })
	set(&norm.Weight, func() (cuda.Ptr, error) { return g.random(s, hidden) })
	set(&norm.Out, func() (cuda.Ptr, error) { return g.poisoned(s, 2*n*hidden) })
	set(&rope.QKV, func() (cuda.Ptr, error) { return g.random(s, n*heads*d) })
	set(&rope.Position, func() (cuda.Ptr, error) { return upload(g, s, positions) })
	set(&rope.InvFreq, func() (cuda.Ptr, error) { return upload(g, s, turns) })
	set(&rope.Pool, func() (cuda.Ptr, error) { return g.poisoned(s, int64(len(slots))*2*blockTokens*d*2) })
	set(&rope.Table, func() (cuda.Ptr, error) { return upload(g, s, slots) })
	set(&silu.X, func() (cuda.Ptr, error) { return g.random(s, n*2*int64(m.FFN)) })
	set(&silu.Out, func() (cuda.Ptr, error) { return g.poisoned(s, 2*n*int64(m.FFN)) })
	if err != nil {
		return nil, err
	}
	again := norm
	return &setup{bench: cuda.Bench{Calls: []cuda.Operation{&norm, rope, &again, silu}}, verify: func(s *cuda.Session) error {
		for _, token := range []int64{0, n - 1, g.r.Int64N(n)} {
			if err := checkNorm(s, &norm, token); err != nil {
				return err
			}
			if err := g.checkRope(s, rope, slots, turns, token); err != nil {
				return err
			}
			if err := checkSilu(s, silu, token); err != nil {
				return err
			}
		}
		return nil
	}}, nil
}

// checkNorm runs the norm and computes one row anew.
func checkNorm(s *cuda.Session, a *cuda.RMSNormArgs, row int64) error {
	width := int64(a.Hidden)
	x, err := rowOf(s, a.X, row, width)
	if err != nil {
		return err
	}
	if a.Residual != 0 {
		residual, err := rowOf(s, a.Residual, row, width)
		if err != nil {
			return err
		}
		for i := range x {
			x[i] = half(x[i] + residual[i])
		}
	}
	weight, err := floats(s, a.Weight, width)
	if err != nil {
		return err
	}
	if err := s.Launch(a, 0); err != nil {
		return err
	}
	got, err := halves(s, a.Out+cuda.Ptr(2*row*width), width)
	if err != nil {
		return err
	}
	return near(fmt.Sprintf("norm of row %d", row), got, reference.RMSNorm(x, weight, float64(a.Eps), half))
}

// checkRope runs rope and computes a query head, and a K head in its block,
// anew.
func (g *gpuBench) checkRope(s *cuda.Session, a *cuda.RopeArgs, slots []int32, turns []float32, token int64) error {
	d, hq, hk := int64(a.HeadDim), int64(a.HeadsQ), int64(a.HeadsKV)
	q, k := g.r.Int64N(hq), g.r.Int64N(hk)
	at := func(head int64) cuda.Ptr { return a.QKV + cuda.Ptr(2*(token*(hq+2*hk)+head)*d) }
	before := map[int64][]float64{}
	for _, head := range []int64{q, hq + k, hq + hk + k} {
		x, err := floats(s, at(head), d)
		if err != nil {
			return err
		}
		before[head] = x
	}
	if err := s.Launch(a, 0); err != nil {
		return err
	}
	angles := make([]float64, d/2)
	for i := range angles {
		angles[i] = float64(float32(token) * turns[i])
	}
	slot := int64(slots[k*a.HeadStride+token/blockTokens])
	inBlock := a.Pool + cuda.Ptr(2*(slot*2*blockTokens+token%blockTokens)*d)
	for _, c := range []struct {
		what string
		at   cuda.Ptr
		want []float64
	}{
		{"q", at(q), reference.Rope(before[q], angles, half)},
		{"k", inBlock, reference.Rope(before[hq+k], angles, half)},
		{"v", inBlock + cuda.Ptr(2*blockTokens*d), before[hq+hk+k]},
	} {
		got, err := halves(s, c.at, d)
		if err != nil {
			return err
		}
		if err := near(fmt.Sprintf("%s of token %d after rope", c.what, token), got, c.want); err != nil {
			return err
		}
	}
	return nil
}

func checkSilu(s *cuda.Session, a *cuda.SiluMulArgs, token int64) error {
	if err := s.Launch(a, 0); err != nil {
		return err
	}
	x, err := rowOf(s, a.X, token, 2*int64(a.FFN))
	if err != nil {
		return err
	}
	got, err := halves(s, a.Out+cuda.Ptr(2*token*int64(a.FFN)), int64(a.FFN))
	if err != nil {
		return err
	}
	return near(fmt.Sprintf("activation of token %d", token), got, reference.SiluMul(x, half))
}
