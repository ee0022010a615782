package calibrate

import (
	"math"
	"strconv"

	"sparseserve/hw"
)

// fitWaves adds to the fit of block-sparse decode what its CTAs' waves cost
// (hw: DecodeWaves), where batches were measured that come in waves of cut lists;
// elsewhere, and where it is no closer, the smooth law stays.
func fitWaves(s *Samples, p *hw.Profile, from source) {
	ctas, hbm := ctasPerSM*s.sms(), p.GPU.HBMBandwidth.SI()
	fit, _ := s.of(probeSparse).split(func(at datum) string { return at.Shape }, 3, nil)
	wavesOf := func(at datum) hw.DecodeWaves {
		return hw.DecodeWavesOf(ctas, lists(at), listTokens("budget_tokens")(at))
	}
	joined := fit.where(func(at datum) bool { w := wavesOf(at); return w.Waves > 1 && w.Splits > 1 })
	if ctas == 0 || len(joined) < 3 {
		return
	}
	smooth := p.SparseDecode
	bytes := kvBytes("budget_tokens")
	block := func(at datum) float64 {
		return blockTokens * float64(at.model.LayerKVBytesPerToken()) / float64(at.model.KVHeads)
	}
	law := func(c []float64, at datum) float64 {
		w := wavesOf(at)
		return c[0] + bytes(at)/c[1] + w.Seconds(c[2], c[3], c[4], c[5], block(at)/c[1]) + group(at)*w.Splits*c[6]
	}
	c := refine(fit, []float64{smooth.Launch.SI(), smooth.Rate.SI(), 3e-6, 3e-6, 1e-6, ctas * 0.8, 1e-8},
		[]bound{callBound, {rateBound.low, hbm}, blockBound, blockBound, blockBound, {1, ctas}, blockBound}, law)
	if logErrors(fit, func(at datum) float64 { return law(c, at) }) > 0.9*logErrors(fit, func(at datum) float64 {
		return p.SparseDecodeSeconds(at.model, kvTokens(at, "budget_tokens"), int(at.At("batch")))
	}) {
		return
	}
	const what = "block-sparse decode kernel"
	p.SparseDecode = hw.Stream{
		Launch: from.figure(c[0]*1e6, "us", what), Rate: from.figure(c[1]*1e-9, "GB/s", what),
		CTAs: from.figure(ctas, "CTAs", strconv.Itoa(ctasPerSM)+" on each SM"), Largest: smooth.Largest,
		Merge: perBlock(c[6], from, what+", merging the splits of a list, for each split and query head"),
		Cut:   perBlock(c[2], from, what+", where lists are cut"),
		Join:  perBlock(c[3], from, what+", where lists are cut and their CTAs come in waves"),
		Wave:  perBlock(c[4], from, what+", for each wave of CTAs but the first"),
		Full:  from.figure(math.Round(c[5]), "CTAs", what+": fewer in the last of some waves read no faster"),
	}
}
