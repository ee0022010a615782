package calibrate

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/sparseserve/sparseserve/hw"
)

func tokens(at datum) float64 { return float64(at.At("tokens")) }

// fitTokens takes the measured points of linears as they are, between which hw draws
// straight lines; more tokens never cost less. The points held out are in the profile
// too, and judged by a curve without them.
func fitTokens(s *Samples, p *hw.Profile, from source) (models []model) {
	p.Linears = nil
	for _, shape := range s.of(probeLinears).shapes() {
		points := s.of(probeLinears).where(func(at datum) bool { return at.Shape == shape })
		m := splitCurve(points, "tokens")
		rows := func(d data) []hw.TokenRow {
			out := curveRows(d, "tokens")
			for i := range out {
				out[i].Shape, out[i].Figure = shape, from.figure(out[i].Value*1e3, "ms", "cuBLAS, fp16, the four linears of one layer")
			}
			return out
		}
		kept := rows(m.fit)
		p.Linears = append(p.Linears, rows(points)...)
		m.name = "linears." + shape
		m.price = func(p *hw.Profile, at datum) float64 {
			without := *p
			without.Linears = kept
			return without.LinearsSeconds(at.model, int(at.At("tokens")))
		}
		models = append(models, m)
	}
	return append(models, fitPointwise(s, p, from))
}

// fitPointwise fits t = launch + bytes/rate over all shapes, which the profile has as two
// rows of one shape: a token's time and that of the most tokens.
func fitPointwise(s *Samples, p *hw.Profile, from source) model {
	const what = "two norms, rope with the write of K and V, activation: launch + bytes/rate"
	all := s.of(probePointwise)
	bytes := func(at datum) float64 { return tokens(at) * hw.PointwiseBytes(at.model) }
	fit, held := all.split(func(at datum) string { return at.Shape }, 3, isMost(all))
	start, hbm := linear(fit, one, bytes), p.GPU.HBMBandwidth.SI()
	c := refine(fit, []float64{math.Max(start[0], 1e-6), 1 / math.Max(start[1], 1/hbm)}, []bound{callBound, {rateBound.low, hbm}}, func(c []float64, at datum) float64 {
		return c[0] + bytes(at)/c[1]
	})
	first := all[0].model
	ends := all.values("tokens")
	p.Pointwise = nil
	for _, n := range []int64{1, ends[len(ends)-1]} {
		t := c[0] + float64(n)*hw.PointwiseBytes(first)/c[1]
		p.Pointwise = append(p.Pointwise, hw.TokenRow{Shape: all[0].Shape, Tokens: int(n), Figure: from.figure(t*1e3, "ms", what)})
	}
	return model{name: "pointwise", fit: fit, held: held, draw: picture{x: bytes, xLabel: "bytes read and written", rate: bytes},
		price: func(p *hw.Profile, at datum) float64 { return p.PointwiseSeconds(at.model, int(at.At("tokens"))) }}
}

// isMost says whether a point is of the most tokens.
func isMost(all data) func(datum) bool {
	n := all.values("tokens")
	return func(at datum) bool { return at.At("tokens") == n[len(n)-1] }
}

// splitCurve sorts one shape's points and holds some out.
func splitCurve(all data, axis string) model {
	size := func(at datum) float64 { return float64(at.At(axis)) }
	slices.SortFunc(all, func(a, b datum) int { return compare(size(a), size(b)) })
	first, last := size(all[0]), size(all[len(all)-1])
	// One of each three neighbours is held out, so that no gap is wide.
	rank := map[int64]int{}
	for i, at := range all {
		rank[at.At(axis)] = i
	}
	neighbours := func(at datum) string { return strconv.Itoa(rank[at.At(axis)] / 3) }
	fit, held := all.split(neighbours, 2, func(at datum) bool { return size(at) == first || size(at) == last })
	return model{fit: fit, held: held, why: falls(all, axis), draw: picture{x: size, xLabel: axis + " in the batch"}}
}

// curveRows takes sorted points as rows, in seconds.
func curveRows(d data, axis string) []hw.TokenRow {
	times, alike := make([]float64, len(d)), make([]float64, len(d))
	for i, at := range d {
		times[i], alike[i] = at.seconds, 1
	}
	var out []hw.TokenRow
	for i, t := range rising(times, alike) {
		out = append(out, hw.TokenRow{Tokens: int(d[i].At(axis)), Figure: hw.Figure{Value: t}})
	}
	return out
}

// falls names the point after which more tokens take least, relative to it:
// a library that takes a worse kernel there, which no curve that rises and no
// neighbour shows.
func falls(all data, axis string) string {
	const told = 0.05
	worst, text := 1-told, ""
	for i, at := range all {
		for _, more := range all[i+1:] {
			if r := more.seconds / at.seconds; r < worst {
				worst = r
				text = fmt.Sprintf("%d %s take %.1f us and %d take %.1f us: the library's own choice of kernel", at.At(axis), axis, at.seconds*1e6, more.At(axis), more.seconds*1e6)
			}
		}
	}
	return text
}
