package calibrate

import (
	"strconv"

	"gonum.org/v1/gonum/stat"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/reference"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/cost"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
)

// fitGemm keeps the measured points; hw interpolates linearly between them. More tokens cost less
// where the library chooses a better kernel. The held-out points are in the profile too, and are
// judged by a curve without them.
func fitGemm(s *Samples, p *hw.Profile, from source) (models []model) {
	p.Linears = nil
	for _, shape := range s.of(probeLinears).shapes() {
		points := s.of(probeLinears).ofShape(shape)
		m := splitCurve(points)
		const what = "cuBLAS, fp16, the four linears of one layer"
		kept := shapeRows(m.fit, shape, from, what)
		p.Linears = append(p.Linears, shapeRows(points, shape, from, what)...)
		m.name = "linears." + shape
		m.price = func(p *hw.Profile, at observation) float64 {
			without := *p
			without.Linears = kept
			return cost.Seconds(cost.Of(&without, at.model).GEMM, sim.Work{Tokens: int(at.At("tokens"))})
		}
		models = append(models, m)
	}
	fitLinearLaunch(s, p, from)
	return models
}

// fitLinearLaunch splits the time of a layer's matrices for one token, which reads all weights,
// into the kernels' fixed time and the read time. The launch is the intercept of a line through the
// measured shapes,
//
//	t = launch + bytes/rate
//
// Fewer than three shapes do not determine it.
func fitLinearLaunch(s *Samples, p *hw.Profile, from source) {
	var bytes, seconds []float64
	for _, at := range s.of(probeLinears) {
		if at.At("tokens") == 1 {
			bytes = append(bytes, float64(at.model.LayerLinears())*at.model.WeightBytesEach)
			seconds = append(seconds, at.seconds)
		}
	}
	if len(bytes) < 3 {
		return
	}
	if launch, perByte := stat.LinearRegression(bytes, seconds, nil, false); launch > 0 &&
		perByte > 0 {
		p.LinearLaunch = from.us(launch,
			"intercept of the times for one token over the bytes of each shape's weights")
	}
}

// splitCurve sorts one shape's points by tokens and holds one of each three neighbours out, so that
// no interval is wide.
func splitCurve(all data) model {
	all = all.inOrder()
	rank := map[string]int{}
	for i, at := range all {
		rank[at.Key()] = i
	}
	neighbours := func(at observation) string { return strconv.Itoa(rank[at.Key()] / 3) }
	fit, held := all.split(neighbours, 2, func(at observation) bool {
		return rank[at.Key()] == 0 || rank[at.Key()] == len(all)-1
	})
	return model{fit: fit, held: held}
}

// shapeRows converts one shape's points to rows.
func shapeRows(d data, shape string, from source, what string) (rows []hw.TokenRow) {
	for _, at := range d.inOrder() {
		rows = append(rows, hw.TokenRow{Shape: shape, Tokens: int(at.At("tokens")),
			Figure: from.figure(at.seconds*1e3, "ms", what)})
	}
	return rows
}

// linears prepares the four linears of one layer.
func (g *gpuRun) linears(m *llm.Model, tokens int64) *work {
	g.try(func() error { return g.s.LinearOpen("") })
	h, q, k, f := int64(m.Hidden), int64(m.QHeads*m.HeadDim), int64(m.KVHeads*m.HeadDim), int64(m.FFN)
	var all []*cuda.LinearArgs
	var calls []cuda.Operation
	for _, l := range []struct{ in, out int64 }{{h, q + 2*k}, {q, h}, {h, 2 * f}, {f, h}} {
		a := &cuda.LinearArgs{
			Tokens: int32(tokens), In: int32(l.in), Out: int32(l.out),
			X: g.random(tokens * l.in), W: g.random(l.out * l.in), Y: g.poisoned(2 * tokens * l.out),
		}
		all, calls = append(all, a), append(calls, a)
	}
	return &work{calls: calls, verify: func() {
		for i, a := range all {
			g.checkLinear(i, a)
		}
	}}
}

// checkLinear recomputes some outputs of the first and last token.
func (g *gpuRun) checkLinear(index int, a *cuda.LinearArgs) {
	g.launch(a)
	in, out := int64(a.In), int64(a.Out)
	for _, token := range []int64{0, int64(a.Tokens) - 1} {
		x := g.rowOf(a.X, token, in)
		var got, want []float64
		for _, o := range []int64{0, out - 1, g.r.Int64N(out), g.r.Int64N(out), g.r.Int64N(out)} {
			got = append(got, g.floats(a.Y+cuda.Ptr(2*(token*out+o)), 1)...)
			want = append(want, reference.Linear(g.rowOf(a.W, o, in), x, reference.Exact)...)
		}
		g.compare(got, want, "linear %d, token %d", index, token)
	}
}

func (g *gpuRun) setupLinears(p Point) *work {
	return g.linears(g.model(p.Shape), p.At("tokens"))
}
