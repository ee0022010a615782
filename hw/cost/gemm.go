package cost

import (
	"math"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

// gemm is the cost of weight matrices: the four linears of a layer, or the LM head.
//
//	t(n) = launch + scale * (measured(n) - linear_launch), at least max(2 n W / peak, bytes / HBM)
//
// n is the tokens of the batch, W the weights, and scale = W / W of the measured shape. This is a
// roofline with the measured shape's efficiency at the same n; if the model's own shape was not
// measured, with the mean efficiency of all measured shapes. launch is linear_launch for the four
// linears and a quarter of it for the LM head.
type gemm struct {
	peak     peak
	measured curve // tokens, seconds
	ragged   curve // for tokens that are not a multiple of 8; empty: as measured
	scale    float64
	narrow   narrow
	launches float64 // seconds, included in the measured rows
	launch   float64 // seconds
	weights  float64
	bytes    float64 // per weight
	shape    string  // of the measured rows
	exact    bool    // the model has that shape
}

// nearestShape returns the model's own shape among n shapes, or else the shape with the nearest
// number of weights.
func nearestShape(p *hw.Profile, m *llm.Model, n int, shape func(i int) string) string {
	best, distance := "", math.Inf(1)
	for i := range n {
		name := shape(i)
		s := p.ShapeOf(name)
		d := math.Abs(math.Log(float64(m.LayerLinears()) / float64(s.Linears())))
		if s.Matches(m) {
			d = -1
		}
		if d < distance {
			best, distance = name, d
		}
	}
	return best
}

// meanShape returns the curve of a shape from the mean of all measured shapes. Each shape
// contributes its time per weight without launches, because tile effects of a single shape do not
// transfer.
func meanShape(p *hw.Profile, of curve, shape *hw.Shape) (mean curve) {
	launches := p.LinearLaunch.Optional()
	for _, n := range of.x {
		sum, shapes := 0.0, 0
		for i := range p.Shapes {
			c := tokenCurve(p.Linears, p.Shapes[i].Name)
			if len(c.x) == 0 {
				continue
			}
			t, _ := c.cost(n)
			sum += (t - launches) / float64(p.Shapes[i].Linears())
			shapes++
		}
		mean.add(n, launches+sum/float64(shapes)*float64(shape.Linears()))
	}
	return mean
}

func newGEMM(p *hw.Profile, m *llm.Model) gemm {
	return newGEMMOf(p, m, m.LayerMatrices(), m.WeightBytesEach)
}

// newGEMMOf returns the cost of matrices with the given bytes per weight.
func newGEMMOf(p *hw.Profile, m *llm.Model, all []llm.Matrix, bytes float64) gemm {
	weights := float64(llm.WeightsOf(all))
	if g, native := gemmGrid(p, m, bytes); g != nil {
		return gridded(p, g, native, all, weights, bytes)
	}
	return newShapeGEMM(p, m, weights, bytes)
}

// newShapeGEMM scales the times of the nearest measured shape.
func newShapeGEMM(p *hw.Profile, m *llm.Model, weights, bytes float64) gemm {
	best := nearestShape(p, m, len(p.Linears), func(i int) string { return p.Linears[i].Shape })
	s := p.ShapeOf(best)
	l := gemm{
		peak:     peakOf(p),
		measured: tokenCurve(p.Linears, best),
		weights:  weights,
		bytes:    bytes,
		shape:    best,
		exact:    s.Matches(m) && m.Plain(),
	}
	l.scale = l.weights / float64(s.Linears()) * max(l.bytes, 2) / 2
	l.launches = p.LinearLaunch.Optional()
	if !l.exact {
		l.measured = meanShape(p, l.measured, s)
	}
	l.launch = l.launches
	l.narrow = newNarrow(p, l.bytes, l.measured, l.launches)
	l.peak.flops = l.narrow.flops
	return l
}

// newHead returns the LM head: hidden x vocab weights.
func newHead(p *hw.Profile, m *llm.Model) gemm {
	all, bytes := []llm.Matrix{{Rows: m.Hidden, Columns: m.Vocab}}, float64(m.WideBytes())
	if g, native := gemmGrid(p, m, bytes); g != nil {
		return gridded(p, g, native, all, float64(llm.WeightsOf(all)), bytes)
	}
	head := float64(llm.WeightsOf(all))
	l := newShapeGEMM(p, m, float64(m.LayerLinears()), bytes)
	l.scale *= head / l.weights
	l.weights = head
	l.launch = l.launches / 4
	return l
}

// Seconds implements Cost.
func (l *gemm) Seconds(w *sim.Work) (s float64, beyond bool) { return l.of(float64(w.Tokens)) }

// of returns the time of n tokens and reports whether n exceeds the measured rows.
func (l *gemm) of(n float64) (t float64, outside bool) {
	if n <= 0 {
		return 0, false
	}
	t, outside = l.time(n)
	return math.Max(l.launch+l.work(t, n), l.peak.floor(2*n*l.weights, l.weights*l.bytes)), outside
}

// time returns the measured time of n tokens.
func (l *gemm) time(n float64) (t float64, outside bool) {
	t, outside = l.measured.cost(n)
	if len(l.ragged.x) > 0 && n > 8 && math.Mod(n, 8) != 0 {
		slow, _ := l.ragged.cost(n)
		t = max(t, slow)
	}
	return t, outside
}

// work returns the part of a measured time of n tokens that is not launch, for these weights.
func (l *gemm) work(t, n float64) float64 { return l.narrow.of(t-l.launches, n) * l.scale }

// beyond returns the time of n tokens without launches, bounded by the peaks.
func (l *gemm) beyond(n float64) float64 {
	if n <= 0 {
		return 0
	}
	t, _ := l.time(n)
	return math.Max(l.work(t, n), l.peak.floor(2*n*l.weights, l.weights*l.bytes))
}

// least returns a lower bound of the time of n tokens at any clock.
func (l *gemm) least(n float64) float64 {
	t, _ := l.of(1)
	return math.Max(t, l.peak.floor(2*n*l.weights, l.weights*l.bytes))
}

// tokenCurve returns the rows of one shape by tokens, in seconds.
func tokenCurve(rows []hw.TokenRow, shape string) curve {
	var c curve
	for _, r := range rows {
		if r.Shape == shape {
			c.add(float64(r.Tokens), r.SI())
		}
	}
	return c
}

// peak holds the card's limits in FLOP/s and bytes/s.
type peak struct {
	flops, hbm float64
}

func peakOf(p *hw.Profile) peak {
	return peak{flops: p.GPU.PeakFP16.SI(), hbm: p.GPU.HBMBandwidth.SI()}
}

// floor returns the least seconds for the given work (law 10): the longer of FLOPs at peak and HBM
// bytes at peak.
func (k peak) floor(flops, bytes float64) float64 {
	return max(flops/k.flops, bytes/k.hbm)
}

// nanoseconds rounds seconds up, so that rounding never undercuts a lower bound.
func nanoseconds(seconds float64) des.Time {
	return des.Time(math.Ceil(seconds * 1e9))
}
