package calibrate

import (
	"math"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/reference"
	"github.com/sparseserve/sparseserve/hw/llm"
)

const (
	normEps  = 1e-5
	ropeBase = 10000
)

// rowOf downloads one row of a dense fp16 tensor.
func (g *gpuRun) rowOf(at cuda.Ptr, row, width int64) []float64 {
	return g.floats(at+cuda.Ptr(2*row*width), width)
}

// pointwiseCalls are the two norms, rope and the activation of one layer; rope writes K and V of a
// prompt's tokens to random blocks.
type pointwiseCalls struct {
	norm, again cuda.RMSNormArgs
	rope        *ropeCall
	silu        cuda.SiluMulArgs
}

func (g *gpuRun) pointwise(m *llm.Model, n int64) *pointwiseCalls {
	hidden, ffn := int64(m.Hidden), int64(m.FFN)
	norm := cuda.RMSNormArgs{
		Rows: int32(n), Hidden: int32(hidden), Eps: normEps, X: g.random(n * hidden),
		Residual: g.random(n * hidden), Weight: g.random(hidden), Out: g.poisoned(2 * n * hidden),
	}
	return &pointwiseCalls{norm: norm, again: norm, rope: g.rope(m, n), silu: cuda.SiluMulArgs{
		Tokens: int32(n), FFN: int32(ffn), X: g.random(n * 2 * ffn), Out: g.poisoned(2 * n * ffn),
	}}
}

// checkPointwise runs each call and recomputes some of its rows.
func (g *gpuRun) checkPointwise(c *pointwiseCalls) {
	n := int64(c.norm.Rows)
	for _, token := range []int64{0, n - 1, g.r.Int64N(n)} {
		g.checkNorm(&c.norm, token)
		g.checkRope(c.rope, token)
		g.checkSilu(&c.silu, token)
	}
}

func (g *gpuRun) setupPointwise(p Point) *work {
	c := g.pointwise(g.model(p.Shape), p.At("tokens"))
	calls := []cuda.Operation{&c.norm, &c.rope.args, &c.again, &c.silu}
	return &work{calls: calls, verify: func() { g.checkPointwise(c) }}
}

// checkNorm runs the norm and recomputes one row.
func (g *gpuRun) checkNorm(a *cuda.RMSNormArgs, row int64) {
	width := int64(a.Hidden)
	x, residual := g.rowOf(a.X, row, width), g.rowOf(a.Residual, row, width)
	for i := range x {
		x[i] = cuda.Rounded(x[i] + residual[i])
	}
	weight := g.floats(a.Weight, width)
	g.launch(a)
	want := reference.RMSNorm(x, weight, float64(a.Eps), cuda.Rounded)
	g.near(a.Out+cuda.Ptr(2*row*width), want, "norm of row %d", row)
}

// ropeCall is rope of a prompt's tokens, which writes K and V to random slots.
type ropeCall struct {
	args    cuda.RopeArgs
	slots   []int32
	inverse []float32 // frequencies
}

func (g *gpuRun) rope(m *llm.Model, tokens int64) *ropeCall {
	d, blocks := int64(m.HeadDim), (tokens+blockTokens-1)/blockTokens
	c := &ropeCall{slots: g.permuted(blocks * int64(m.KVHeads)), inverse: make([]float32, d/2)}
	for i := range c.inverse {
		c.inverse[i] = float32(math.Pow(ropeBase, -2*float64(i)/float64(d)))
	}
	c.args = cuda.RopeArgs{
		Tokens: int32(tokens), HeadsQ: int32(m.QHeads), HeadsKV: int32(m.KVHeads), HeadDim: int32(d),
		BlockTokens: blockTokens, HeadStride: blocks,
		QKV:      g.random(tokens * int64(m.QHeads+2*m.KVHeads) * d),
		Position: upload(g, counted[int32](tokens)), InvFreq: upload(g, c.inverse),
		Pool: g.poisoned(int64(len(c.slots)) * 2 * blockTokens * d * 2), Table: upload(g, c.slots),
	}
	return c
}

// checkRope runs rope and recomputes a query head, and a K and a V head in their block.
func (g *gpuRun) checkRope(c *ropeCall, token int64) {
	a := &c.args
	d, hq, hk := int64(a.HeadDim), int64(a.HeadsQ), int64(a.HeadsKV)
	q, k := g.r.Int64N(hq), g.r.Int64N(hk)
	at := func(head int64) cuda.Ptr { return a.QKV + cuda.Ptr(2*(token*(hq+2*hk)+head)*d) }
	qBefore, kBefore, vBefore := g.floats(at(q), d), g.floats(at(hq+k), d), g.floats(at(hq+hk+k), d)
	g.launch(a)
	angles := make([]float64, d/2)
	for i := range angles {
		angles[i] = float64(float32(token) * c.inverse[i])
	}
	slot := int64(c.slots[k*a.HeadStride+token/blockTokens])
	inBlock := a.Pool + cuda.Ptr(2*(slot*2*blockTokens+token%blockTokens)*d)
	const what = "%s of token %d after rope"
	g.near(at(q), reference.Rope(qBefore, angles, cuda.Rounded), what, "q", token)
	g.near(inBlock, reference.Rope(kBefore, angles, cuda.Rounded), what, "k", token)
	g.near(inBlock+cuda.Ptr(2*blockTokens*d), vBefore, what, "v", token)
}

func (g *gpuRun) checkSilu(a *cuda.SiluMulArgs, token int64) {
	g.launch(a)
	want := reference.SiluMul(g.rowOf(a.X, token, 2*int64(a.FFN)), cuda.Rounded)
	g.near(a.Out+cuda.Ptr(2*token*int64(a.FFN)), want, "activation of token %d", token)
}
