package calibrate

import (
	"math"

	"sparseserve/hw"
)

// fitDenseUneven fits what a batch of unequal contexts takes longer than as many
// tokens in equal ones (hw: cutOf). All else stays what equal contexts have shown.
func fitDenseUneven(s *Samples, p *hw.Profile, from source) (model, bool) {
	const what = "paged dense decode kernel, pages anywhere in the pool"
	all := s.of(probeDenseUneven)
	if len(all) == 0 || !p.DenseDecode.CTAs.Set() { // without CTAs nothing says how contexts are cut
		return model{}, false
	}
	fit, held := all.split(func(at datum) string { return at.Shape }, 3, nil)
	price := func(p *hw.Profile, at datum) float64 { return p.DenseBatchSeconds(at.model, contextsOf(at.Point)) }
	f := &p.DenseDecode
	set := func(c []float64) {
		f.Pages = perBlock(c[0], from, what+", over the same where the KV alone fills it")
		f.Tail = perBlock(c[1], from, what+", for each block that the warp with most of them has more than the mean")
		f.Piece = perBlock(c[2], from, what+", unequal contexts of which CTAs have two pieces")
	}
	set(refine(fit, []float64{5e-7, 1e-6, 3e-6}, []bound{blockBound, blockBound, blockBound}, func(c []float64, at datum) float64 {
		set(c)
		return price(p, at)
	}))
	bytes := func(at datum) float64 {
		sum := int64(0)
		for _, c := range contextsOf(at.Point) {
			sum += int64(c)
		}
		return float64(sum * at.model.LayerKVBytesPerToken())
	}
	return model{name: "dense_uneven", fit: fit, held: held, draw: picture{x: bytes, xLabel: "bytes", rate: bytes}, price: price}, true
}

// fullShares are the shares of the SMs that lists may be for clusters of four
// CTAs each, two on an SM: half where these fit without a gap, less where the
// card's groups of SMs leave some over.
var fullShares = []float64{1. / 2, 15. / 32}

// fitPSAUneven fits what lists that end in different rounds cost more than equal
// ones of the same bytes (hw: psaKernel), and up to how many lists waves are
// whole: with unequal lists it is the waves of the longest that are waited for.
// All else stays what equal lists have shown.
func fitPSAUneven(s *Samples, p *hw.Profile, from source) (model, bool) {
	const what = "PSA decode kernel, lists that end in different rounds"
	all := s.of(probePSAUneven)
	if len(all) == 0 {
		return model{}, false
	}
	fit, held := all.split(func(at datum) string { return at.Shape }, 3, nil)
	price := func(p *hw.Profile, at datum) float64 {
		t, _ := p.PSARoundsSeconds(at.model, int(at.At("batch")), int(at.At("micro_blocks")), reach(at.Point, at.model))
		return t
	}
	f, room := &p.PSADecode, p.PSADecode.Few.Room.Value // 0: one form for all
	few := fit.where(func(at datum) bool { return lists(at) <= room })
	many := fit.where(func(at datum) bool { return lists(at) > room })
	if len(many) > 2 {
		f.Alone = alone(many, p, &f.Alone, price, from, what+", for each block of a list whose CTA waits for no other's")
	}
	if len(few) > 2 {
		equal, _ := s.of(probePSA, probePSALaunches).split(func(at datum) string { return at.Probe + at.Shape + byAxis("micro_blocks")(at) }, 2, nil)
		equal = equal.where(func(at datum) bool { return lists(at) <= room })
		least, best := math.Inf(1), f.Few
		for _, share := range fullShares {
			f.Few = fitPSAFew(equal, p.GPU.HBMBandwidth.SI(), room, share*room, from)
			f.Few.Full = from.figure(share*room, "lists", "clusters of four CTAs that the card has room for, by how long more lists take")
			f.Few.Alone = alone(few, p, &f.Few.Alone, price, from, what+", few lists, for each block of a warp that waits for no other's")
			errors := logErrors(few, func(at datum) float64 { return price(p, at) }) +
				logErrors(equal, func(at datum) float64 { return pricePSA(p, at) })
			if errors < least*(1-1e-9) {
				least, best = errors, f.Few
			}
		}
		f.Few = best
	}
	read := func(at datum) float64 {
		n := 0
		for _, lists := range reach(at.Point, at.model) {
			n += lists
		}
		return float64(int64(n)*at.At("micro_blocks")*blockTokens*at.model.LayerKVBytesPerToken()) / float64(at.model.KVHeads)
	}
	return model{name: "psa_uneven", fit: fit, held: held, draw: picture{x: read, xLabel: "bytes", rate: read}, price: price}, true
}

// alone fits one figure of the profile to points by what the whole profile says.
// No point depends on it where it is small or large, so the search begins with
// the best of a row of values.
func alone(d data, p *hw.Profile, at *hw.Figure, price func(*hw.Profile, datum) float64, from source, what string) hw.Figure {
	model := func(c []float64, point datum) float64 {
		*at = from.figure(c[0]*1e9, "ns", what)
		return price(p, point)
	}
	best, least := 0.0, math.Inf(1)
	for c := 5e-8; c < 2e-5; c *= 1.15 {
		if e := logErrors(d, func(point datum) float64 { return model([]float64{c}, point) }); e < least {
			best, least = c, e
		}
	}
	c := refine(d, []float64{best}, []bound{blockBound}, model)
	return from.figure(c[0]*1e9, "ns", what)
}
