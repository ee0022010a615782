package calibrate

import (
	"math"
	"strconv"

	"sparseserve/hw"
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
	if m, ok := fitDenseUneven(s, p, from); ok {
		models = append(models, m)
	}
	if m, ok := fitPSA(s, p, from); ok {
		models = append(models, m)
		if m, ok := fitPSAUneven(s, p, from); ok {
			models = append(models, m)
		}
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

// scoredAtOnce is the blocks of a list that one CTA of the selection kernel
// scores at once.
const scoredAtOnce = 128

// fitScoring fits scores and top-k in one kernel (hw: stream): the digests'
// bytes; more than one round for a long list; and where there are more lists
// than SMs, one CTA a list instead of a cluster, and a time for each.
func fitScoring(s *Samples, p *hw.Profile, from source) model {
	const what = "scores and top-k in one kernel"
	fit, held := s.of(probeSelect).split(func(at datum) string { return at.Shape }, 3, nil)
	length := func(at datum) float64 { return float64(at.At("context_tokens") / blockTokens) }
	bytes := func(at datum) float64 { return lists(at) * length(at) * float64(at.model.MetaBytesPerBlock()) }
	room, hbm := s.sms(), p.GPU.HBMBandwidth.SI()
	c := refine(fit, []float64{10e-6, 3e-6, 3e-6, 8e-7, 1e-8, 4e-9, hbm * 0.9},
		[]bound{callBound, blockBound, blockBound, blockBound, blockBound, blockBound, {rateBound.low, hbm}},
		func(c []float64, at datum) float64 {
			t, each := c[0]+bytes(at)/c[6], c[4]
			if length(at) > scoredAtOnce {
				t, each = t+c[1], each+c[5]
			}
			if over := lists(at) - room; over > 0 {
				t += c[2] + (group(at)-1)*c[3] + over*each
			}
			return t
		})
	p.Scoring = hw.Stream{
		Launch: from.figure(c[0]*1e6, "us", what), Rate: from.figure(c[6]*1e-9, "GB/s", what),
		AtOnce:   from.figure(scoredAtOnce, "blocks", "the kernel's CTA"),
		Long:     from.figure(c[1]*1e6, "us", what+", lists of more blocks than at_once"),
		Crowd:    perBlock(c[2], from, what+", more lists than room"),
		PerQuery: perBlock(c[3], from, what+", more lists than room, for each query head of a KV head but the first"),
		PerHead:  perBlock(c[4], from, what+", for each list beyond room"),
		PerLong:  perBlock(c[5], from, what+", for each list beyond room of more blocks than at_once"),
		Largest:  from.figure(largestOf(s.of(probeSelect), bytes)*1e-9, "GB", "the largest point measured"),
	}
	if room > 0 {
		p.Scoring.Room = from.figure(room, "lists", "one for each SM")
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

// Constants of the PSA kernel (psa_cluster.cu): blocks of a wave, and how many
// lists for each SM clusters are made for.
const (
	psaWave    = 64
	listsPerSM = 1
)

// fitPSA fits the forms of the PSA kernel (hw: psaKernel): one for all lists, or
// another for few of them where that is closer, as on a card with clusters.
func fitPSA(s *Samples, p *hw.Profile, from source) (model, bool) {
	const what = "PSA decode kernel"
	all := s.of(probePSA, probePSALaunches)
	if len(all) == 0 {
		return model{}, false
	}
	room := listsPerSM * s.sms()
	fit, held := all.split(func(at datum) string { return at.Probe + at.Shape + byAxis("micro_blocks")(at) }, 2, nil)
	var few, many data
	for _, at := range fit {
		if lists(at) <= room {
			few = append(few, at)
		} else {
			many = append(many, at)
		}
	}
	bytes := kvBytes("budget_tokens")
	largest := from.figure(largestOf(all, bytes)*1e-9, "GB", "the largest point measured")
	price := pricePSA
	fitMany := func(d data) hw.PSADecode {
		hbm := p.GPU.HBMBandwidth.SI()
		c := refine(d, []float64{7e-6, 5e-9, 2e-6, 1e-7, hbm * 0.9, 7e-6}, []bound{callBound, blockBound, blockBound, blockBound, {rateBound.low, hbm}, blockBound},
			func(c []float64, at datum) float64 {
				n := float64(psaLaunches(at))
				return c[0] + (n-1)*c[5] + n*lists(at)*c[1] + math.Max(psaRounds(at)*c[2]+psaLength(at)*c[3], bytes(at)/c[4])
			})
		return hw.PSADecode{
			Launch: from.figure(c[0]*1e6, "us", what), Rate: from.figure(c[4]*1e-9, "GB/s", what),
			PerHead:  perBlock(c[1], from, what+", for each request and KV head"),
			Round:    from.figure(c[2]*1e6, "us", what+", for each microbatch of one list, its decision included"),
			PerBlock: perBlock(c[3], from, what+", for each block of one list"),
			Relaunch: from.figure(c[5]*1e6, "us", what+", for each launch but the first"),
			Largest:  largest,
		}
	}
	p.PSADecode = fitMany(fit)
	if len(few) > 5 && len(many) > 5 {
		one := p.PSADecode
		alone := logErrors(fit, func(at datum) float64 { return price(p, at) })
		p.PSADecode = fitMany(many)
		p.PSADecode.Few = fitPSAFew(few, p.GPU.HBMBandwidth.SI(), room, room/2, from)
		if logErrors(fit, func(at datum) float64 { return price(p, at) }) > 0.9*alone {
			p.PSADecode = one
		}
	}
	return model{name: "psa_decode", fit: fit, held: held, draw: picture{x: bytes, xLabel: "bytes", rate: bytes}, price: price}, true
}

// pricePSA is what a profile says of a point of equal lists.
func pricePSA(p *hw.Profile, at datum) float64 {
	t, _ := p.PSADecodeSeconds(at.model, int(at.At("batch")), int(psaLength(at)), blockTokens, int(at.At("micro_blocks")), psaLaunches(at))
	return t
}

func fitPSAFew(few data, hbm, room, full float64, from source) hw.PSAFew {
	const what = "PSA decode kernel, few lists"
	bytes := kvBytes("budget_tokens")
	c := refine(few, []float64{8e-6, 1e-6, 1e-6, 3e-7, hbm * 0.9}, []bound{callBound, blockBound, blockBound, blockBound, {rateBound.low, hbm}},
		func(c []float64, at datum) float64 {
			n := float64(psaLaunches(at))
			next := n * (hw.PSAWaves(lists(at), full, psaLength(at)/n, psaWave) - 1)
			return n*(c[0]+group(at)*c[1]) + next*(c[2]+group(at)*c[3]) + bytes(at)/c[4]
		})
	return hw.PSAFew{
		Room: from.figure(room, "lists", "one for each SM"), Wave: from.figure(psaWave, "blocks", "the kernel's clusters"),
		Launch: from.figure(c[0]*1e6, "us", what), Rate: from.figure(c[4]*1e-9, "GB/s", what),
		Query:     perBlock(c[1], from, what+", for each query head of a KV head"),
		NextWave:  perBlock(c[2], from, what+", for each wave but the first"),
		WaveQuery: perBlock(c[3], from, what+", for each wave but the first and query head of a KV head"),
	}
}
