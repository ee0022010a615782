package calibrate

import (
	"fmt"
	"slices"
	"strconv"

	"sparseserve/cuda/live"
	"sparseserve/hw"
)

func tokens(at datum) float64 { return float64(at.At("tokens")) }

// fitTokens takes the measured points of linears, the rest of a layer, and the
// LM head as they are, between which hw draws straight lines; more tokens never
// cost less. Where linears were measured at the live loop's own numbers of tokens
// alone, those are what they are priced at, each by what it took: the points held
// out are in the profile too, and judged by a curve without them.
func fitTokens(s *Samples, p *hw.Profile, from source) []model {
	p.LinearGrid = hw.Figure{}
	padded := onLinearGrid(s.of(probeLinears))
	if padded {
		p.LinearGrid = hw.Figure{Value: live.LinearGrid, Unit: "tokens", From: hw.Derived, Source: "the live loop runs linears at multiples of it, whose kernels it has chosen ahead"}
	}
	var models []model
	for _, part := range []struct {
		name, probe, axis, what string
		rows                    func(p *hw.Profile) *[]hw.TokenRow
		price                   func(p *hw.Profile, at datum) float64
	}{
		{"linears", probeLinears, "tokens", "cuBLAS, fp16, the four linears of one layer", func(p *hw.Profile) *[]hw.TokenRow { return &p.Linears },
			func(p *hw.Profile, at datum) float64 { return p.LinearsSeconds(at.model, int(at.At("tokens"))) }},
		{"pointwise", probePointwise, "tokens", "two norms, rope with the write of K and V, activation", func(p *hw.Profile) *[]hw.TokenRow { return &p.Pointwise },
			func(p *hw.Profile, at datum) float64 { return p.PointwiseSeconds(at.model, int(at.At("tokens"))) }},
		{"head", probeHead, "rows", "norm, LM head through cuBLAS, greedy token", func(p *hw.Profile) *[]hw.TokenRow { return &p.Head },
			func(p *hw.Profile, at datum) float64 { return p.HeadSeconds(at.model, 0, int(at.At("rows"))) }},
	} {
		all := s.of(part.probe)
		if len(all) == 0 {
			continue
		}
		*part.rows(p) = nil
		for _, shape := range all.shapes() {
			points := all.where(func(at datum) bool { return at.Shape == shape })
			m := splitCurve(points, part.axis)
			rows := func(d data) []hw.TokenRow {
				out := curveRows(d, part.axis)
				for i := range out {
					out[i].Shape, out[i].Figure = shape, from.figure(out[i].Value*1e3, "ms", part.what)
				}
				return out
			}
			m.name, m.price = part.name+"."+shape, part.price
			kept := rows(m.fit)
			if padded {
				*part.rows(p) = append(*part.rows(p), rows(points)...)
				m.price = func(p *hw.Profile, at datum) float64 {
					without := *p
					*part.rows(&without) = kept
					return part.price(&without, at)
				}
			} else {
				*part.rows(p) = append(*part.rows(p), kept...)
			}
			models = append(models, m)
		}
	}
	if m, ok := fitEmbedding(s, p, from); ok {
		models = append(models, m)
	}
	return models
}

// onLinearGrid says whether all points are at numbers of tokens that the live loop
// runs linears at.
func onLinearGrid(all data) bool {
	sizes := all.values("tokens")
	return len(sizes) > 0 && sizes[len(sizes)-1] > live.LinearGrid &&
		!slices.ContainsFunc(sizes, func(n int64) bool { return n > live.LinearGrid && n%live.LinearGrid != 0 })
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

// fitEmbedding fits t = launch + bytes/rate: a row of the table read and
// written for each token.
func fitEmbedding(s *Samples, p *hw.Profile, from source) (model, bool) {
	all := s.of(probeEmbed)
	if len(all) == 0 {
		return model{}, false
	}
	bytes := func(at datum) float64 { return tokens(at) * float64(2*at.model.Hidden*at.model.WeightBytesEach) }
	fit, held := all.split(together, 3, nil)
	c := refine(fit, []float64{5e-6, p.GPU.HBMBandwidth.SI() / 2}, []bound{callBound, {rateBound.low, p.GPU.HBMBandwidth.SI()}}, func(c []float64, at datum) float64 {
		return c[0] + bytes(at)/c[1]
	})
	p.Embedding = hw.Embedding{Launch: from.figure(c[0]*1e6, "us", "embedding"), Rate: from.figure(c[1]*1e-9, "GB/s", "embedding, rows read and written")}
	return model{name: "embedding", fit: fit, held: held, draw: picture{x: tokens, xLabel: "tokens in the batch"},
		price: func(p *hw.Profile, at datum) float64 { return p.HeadSeconds(at.model, int(at.At("tokens")), 0) }}, true
}
