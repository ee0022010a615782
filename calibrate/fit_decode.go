package calibrate

import (
	"math"
	"strconv"

	"github.com/sparseserve/sparseserve/hw"
)

// blockTokens is the tokens of a KV block in every attention probe.
const blockTokens = 32

// ctasPerSM is how many of a list's splits the decode kernel runs at once on
// each of the card's SMs.
const ctasPerSM = 2

// What a point of decode or selection consists of: lists, one for each request
// and KV head, of so many tokens, and the query heads of each.
func lists(at datum) float64 { return float64(at.At("batch") * int64(at.model.KVHeads)) }

func group(at datum) float64 { return float64(at.model.QHeads / at.model.KVHeads) }

func listTokens(axis string) func(at datum) float64 {
	return func(at datum) float64 { return float64(at.At(axis)) }
}

// kvTokens sums the tokens over requests.
func kvTokens(at datum, axis string) int64 { return at.At("batch") * at.At(axis) }

func kvBytes(axis string) func(at datum) float64 {
	return func(at datum) float64 { return float64(kvTokens(at, axis) * at.model.LayerKVBytesPerToken()) }
}

// fitStreams fits the kernels that live on bytes, never faster than HBM.
func fitStreams(s *Samples, p *hw.Profile, from source) []model {
	models := []model{
		fitDecode(s, p, from, "dense_decode", probeDense, "context_tokens", "paged dense decode kernel", &p.DenseDecode,
			func(p *hw.Profile, at datum) float64 {
				return p.DenseDecodeSeconds(at.model, kvTokens(at, "context_tokens"), int(at.At("batch")))
			}),
		fitDecode(s, p, from, "sparse_decode", probeSparse, "budget_tokens", "block-sparse decode kernel", &p.SparseDecode,
			func(p *hw.Profile, at datum) float64 {
				return p.SparseDecodeSeconds(at.model, kvTokens(at, "budget_tokens"), int(at.At("batch")))
			}),
		fitScoring(s, p, from),
	}
	fitWaves(s, p, from)
	if m, ok := fitPSA(s, p, from); ok {
		models = append(models, m)
	}
	return models
}

// fitDecode fits t = launch + group splits merge + bytes/rate. Few lists are cut
// into splits until these fill the card, and merging them is what a small
// launch waits for.
func fitDecode(s *Samples, p *hw.Profile, from source, name, probe, axis, what string, stream *hw.Stream, price func(*hw.Profile, datum) float64) model {
	fit, held := s.of(probe).split(func(at datum) string { return at.Shape }, 3, nil)
	bytes, tokens, ctas := kvBytes(axis), listTokens(axis), ctasPerSM*s.sms()
	hbm := p.GPU.HBMBandwidth.SI()
	start := linear(fit, one, bytes)
	c := refine(fit, []float64{math.Max(start[0], 1e-6), 1e-7, 1 / math.Max(start[1], 1/hbm)}, []bound{callBound, blockBound, {rateBound.low, hbm}},
		func(c []float64, at datum) float64 {
			return c[0] + group(at)*hw.ListSplits(ctas, lists(at), tokens(at))*c[1] + bytes(at)/c[2]
		})
	*stream = hw.Stream{
		Launch: from.figure(c[0]*1e6, "us", what), Rate: from.figure(c[2]*1e-9, "GB/s", what),
		Largest: from.figure(largestOf(s.of(probe), bytes)*1e-9, "GB", "the largest point measured"),
	}
	if merge := perBlock(c[1], from, what+", merging the splits of a list, for each split and query head"); merge.Set() && ctas > 0 {
		stream.Merge, stream.CTAs = merge, from.figure(ctas, "CTAs", strconv.Itoa(ctasPerSM)+" on each SM")
	}
	return model{name: name, fit: fit, held: held, price: price, draw: picture{x: bytes, xLabel: "bytes", rate: bytes}}
}

func largestOf(d data, size func(datum) float64) float64 {
	most := 0.0
	for _, at := range d {
		most = math.Max(most, size(at))
	}
	return most
}

// fitWaves adds to block-sparse decode what each wave of its CTAs but the first costs (hw:
// DecodeWaves), where batches were measured that come in waves; elsewhere, and where it is
// no closer, the smooth law stays.
func fitWaves(s *Samples, p *hw.Profile, from source) {
	ctas, hbm := ctasPerSM*s.sms(), p.GPU.HBMBandwidth.SI()
	fit, _ := s.of(probeSparse).split(func(at datum) string { return at.Shape }, 3, nil)
	wavesOf := func(at datum) hw.DecodeWaves {
		return hw.DecodeWavesOf(ctas, lists(at), listTokens("budget_tokens")(at))
	}
	several := fit.where(func(at datum) bool { return wavesOf(at).Waves > 1 })
	if ctas == 0 || len(several) < 3 {
		return
	}
	smooth := p.SparseDecode
	bytes := kvBytes("budget_tokens")
	law := func(c []float64, at datum) float64 {
		w := wavesOf(at)
		return c[0] + bytes(at)/c[1] + (w.Waves-1)*c[2] + group(at)*w.Merged()*c[3]
	}
	c := refine(fit, []float64{smooth.Launch.SI(), smooth.Rate.SI(), 1e-6, 1e-7}, []bound{callBound, {rateBound.low, hbm}, blockBound, blockBound}, law)
	if logErrors(fit, func(at datum) float64 { return law(c, at) }) > logErrors(fit, func(at datum) float64 {
		return p.SparseDecodeSeconds(at.model, kvTokens(at, "budget_tokens"), int(at.At("batch")))
	}) {
		return
	}
	const what = "block-sparse decode kernel"
	p.SparseDecode = hw.Stream{
		Launch: from.figure(c[0]*1e6, "us", what), Rate: from.figure(c[1]*1e-9, "GB/s", what),
		CTAs: from.figure(ctas, "CTAs", strconv.Itoa(ctasPerSM)+" on each SM"), Largest: smooth.Largest,
		Merge: perBlock(c[3], from, what+", merging the splits of a list, for each query head"),
		Wave:  perBlock(c[2], from, what+", for each wave of CTAs but the first"),
	}
	if !p.SparseDecode.Wave.Set() {
		p.SparseDecode = smooth
	}
}

// fitScoring fits scores and top-k in one kernel (hw: stream), t = launch + bytes/rate of the
// digests, and the searches and crowds of lists where the samples say how many SMs there are.
func fitScoring(s *Samples, p *hw.Profile, from source) model {
	const what = "scores and top-k in one kernel"
	fit, held := s.of(probeSelect).split(func(at datum) string { return at.Shape }, 3, nil)
	bytes := func(at datum) float64 {
		return lists(at) * float64(at.At("context_tokens")/blockTokens) * float64(at.model.MetaBytesPerBlock())
	}
	hbm := p.GPU.HBMBandwidth.SI()
	start, bounds := []float64{10e-6, hbm / 2}, []bound{callBound, {rateBound.low, hbm}}
	ctas := ctasPerSM * s.sms()
	if ctas > 0 {
		start, bounds = append(start, 3e-6, 4e-6), append(bounds, blockBound, blockBound)
	}
	c := refine(fit, start, bounds, func(c []float64, at datum) float64 {
		t := c[0] + bytes(at)/c[1]
		if ctas > 0 {
			t += hw.ScoringSearches(float64(at.At("context_tokens")/blockTokens))*c[2] + hw.ScoringCrowd(ctas, lists(at))*c[3]
		}
		return t
	})
	p.Scoring = hw.Stream{
		Launch: from.figure(c[0]*1e6, "us", what), Rate: from.figure(c[1]*1e-9, "GB/s", what),
		Largest: from.figure(largestOf(s.of(probeSelect), bytes)*1e-9, "GB", "the largest point measured"),
	}
	if ctas > 0 {
		p.Scoring.CTAs = from.figure(ctas, "CTAs", strconv.Itoa(ctasPerSM)+" on each SM")
		p.Scoring.Search = from.figure(c[2]*1e6, "us", what+", the search of a list of more blocks than are ranked at once")
		p.Scoring.Crowd = from.figure(c[3]*1e6, "us", what+", of lists that no cluster of CTAs shares")
	}
	return model{name: "scoring", fit: fit, held: held, draw: picture{x: bytes, xLabel: "bytes", rate: bytes},
		price: func(p *hw.Profile, at datum) float64 {
			return p.ScoringSeconds(at.model, at.At("batch")*(at.At("context_tokens")/blockTokens), int(at.At("batch")))
		}}
}

// sms is the card's SMs, 0 where the samples do not say.
func (s *Samples) sms() float64 {
	n, err := strconv.Atoi(s.Origin.SMs)
	if err != nil || n < 0 {
		return 0
	}
	return float64(n)
}

// psaRounds, psaLength and psaLaunches are what a point of PSA consists of:
// microbatches and blocks of a list, and launches, 1 or one for each round.
func psaRounds(at datum) float64 {
	return math.Ceil(psaLength(at) / float64(at.At("micro_blocks")))
}

func psaLength(at datum) float64 { return float64(at.At("budget_tokens") / blockTokens) }

func psaLaunches(at datum) int {
	if at.Probe == probePSALaunches {
		return int(psaRounds(at))
	}
	return 1
}

// fitPSA fits the PSA kernel (hw: psaKernel).
func fitPSA(s *Samples, p *hw.Profile, from source) (model, bool) {
	const what = "PSA decode kernel"
	all := s.of(probePSA, probePSALaunches, probePSAUneven)
	if len(all) == 0 {
		return model{}, false
	}
	fit, held := all.split(func(at datum) string { return at.Probe + at.Shape + byAxis("micro_blocks")(at) }, 2, nil)
	hbm, few := p.GPU.HBMBandwidth.SI(), s.sms()
	c := refine(fit, []float64{7e-6, 5e-9, 2e-6, hbm * 0.9, 7e-6}, []bound{callBound, blockBound, blockBound, {rateBound.low, hbm}, blockBound},
		func(c []float64, at datum) float64 {
			n, least := float64(psaLaunches(at)), c[2]
			if lists(at) <= few {
				least *= lists(at) / few
			}
			t := c[0] + (n-1)*c[4] + n*lists(at)*c[1]
			for _, bytes := range psaRoundBytes(at) {
				t += math.Max(least, bytes/c[3])
			}
			return t
		})
	p.PSADecode = hw.PSADecode{
		Launch: from.figure(c[0]*1e6, "us", what), Rate: from.figure(c[3]*1e-9, "GB/s", what),
		PerHead:  perBlock(c[1], from, what+", for each request and KV head"),
		Round:    from.figure(c[2]*1e6, "us", what+", for each microbatch of one list, its decision included"),
		Relaunch: from.figure(c[4]*1e6, "us", what+", for each launch but the first"),
		Largest:  from.figure(largestOf(all, psaBytes)*1e-9, "GB", "the largest point measured"),
	}
	if few > 0 {
		p.PSADecode.FewLists = from.figure(few, "lists", "one for each SM")
	}
	return model{name: "psa_decode", fit: fit, held: held, draw: picture{x: psaBytes, xLabel: "bytes", rate: psaBytes}, price: pricePSA}, true
}

// psaRoundBytes are what all lists of a point attend to, round by round.
func psaRoundBytes(at datum) (rounds []float64) {
	each := float64(at.At("micro_blocks")*blockTokens*at.model.LayerKVBytesPerToken()) / float64(at.model.KVHeads) // of a list
	if at.Probe == probePSAUneven {
		for _, lists := range reach(at.Point, at.model) {
			rounds = append(rounds, float64(lists)*each)
		}
		return rounds
	}
	n := psaRounds(at)
	for range int(n) {
		rounds = append(rounds, kvBytes("budget_tokens")(at)/n)
	}
	return rounds
}

func psaBytes(at datum) (sum float64) {
	for _, bytes := range psaRoundBytes(at) {
		sum += bytes
	}
	return sum
}

// pricePSA is what a profile says of a point.
func pricePSA(p *hw.Profile, at datum) float64 {
	batch, micro := int(at.At("batch")), int(at.At("micro_blocks"))
	if at.Probe == probePSAUneven {
		t, _ := p.PSARoundsSeconds(at.model, batch, blockTokens, micro, reach(at.Point, at.model))
		return t
	}
	t, _ := p.PSADecodeSeconds(at.model, batch, int(psaLength(at)), blockTokens, micro, psaLaunches(at))
	return t
}
