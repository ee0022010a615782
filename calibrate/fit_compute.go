package calibrate

import (
	"math"
	"slices"
	"strconv"

	"sparseserve/hw"
	"sparseserve/sim"
)

func tokens(at datum) float64 { return float64(at.At("tokens")) }

// fitLinears takes the measured points as they are, between which hw draws
// straight lines; more tokens never cost less.
func fitLinears(s *Samples, p *hw.Profile, from source) []model {
	var models []model
	p.Linears = nil
	for _, shape := range shapes {
		all := s.of(probeLinears).where(func(at datum) bool { return at.Shape == shape })
		if len(all) == 0 {
			continue
		}
		slices.SortFunc(all, func(a, b datum) int { return compare(tokens(a), tokens(b)) })
		first, last := tokens(all[0]), tokens(all[len(all)-1])
		// One of each three neighbours is held out, so that no gap is wide.
		rank := map[int64]int{}
		for i, at := range all {
			rank[at.At("tokens")] = i
		}
		neighbours := func(at datum) string { return strconv.Itoa(rank[at.At("tokens")] / 3) }
		fit, held := all.split(neighbours, 2, func(at datum) bool { return tokens(at) == first || tokens(at) == last })
		times, alike := make([]float64, len(fit)), make([]float64, len(fit))
		for i, at := range fit {
			times[i], alike[i] = at.seconds, 1
		}
		for i, t := range rising(times, alike) {
			p.Linears = append(p.Linears, hw.TokenRow{Shape: shape, Tokens: int(fit[i].At("tokens")), Figure: from.figure(t*1e3, "ms", "cuBLAS, fp16, the four linears of one layer")})
		}
		models = append(models, model{name: "linears." + shape, fit: fit, held: held,
			price: func(p *hw.Profile, at datum) float64 { return p.LinearsSeconds(at.model, int(at.At("tokens"))) },
			draw:  picture{x: tokens, xLabel: "tokens in the batch"}})
	}
	return models
}

func span(at datum) sim.Span {
	return sim.Span{Query: int(at.At("query_tokens")), Prefix: int(at.At("prefix_tokens"))}
}

func spanFLOPs(at datum) float64 { return hw.PrefillFLOPs(at.model, span(at)) }

// kvRead is the least that a chunk's attention reads from HBM, in bytes.
func kvRead(at datum) float64 {
	s := span(at)
	return float64(int64(s.Query+s.Prefix) * at.model.LayerKVBytesPerToken())
}

// fitPrefill fits t = launch(q) + FLOPs / rate(q) for each query length, both
// within what the profile allows: launches that rise, rates that grow no
// faster than the query.
func fitPrefill(s *Samples, p *hw.Profile, from source) []model {
	all := s.of(probePrefill)
	// Without prefix is where launches show: one shape's stay in the fit.
	fit, held := all.split(byAxis("query_tokens"), 2, func(at datum) bool {
		return at.At("prefix_tokens") == 0 && at.Shape == all[0].Shape
	})
	queries := all.values("query_tokens")
	of := func(q int64) data {
		return fit.where(func(at datum) bool { return at.At("query_tokens") == q })
	}
	seconds := func(launch, rate float64, at datum) float64 {
		return launch + math.Max(spanFLOPs(at)/rate, kvRead(at)/p.GPU.HBMBandwidth.SI())
	}
	launchBound, flopsBound := bound{1e-6, 1e-2}, bound{1e9, 1e16}
	launches, weights := make([]float64, len(queries)), make([]float64, len(queries))
	for i, q := range queries {
		c := linear(of(q), one, spanFLOPs)
		launches[i] = refine(of(q), []float64{c[0], 1 / math.Max(c[1], 1e-15)}, []bound{launchBound, flopsBound}, func(c []float64, at datum) float64 {
			return seconds(c[0], c[1], at)
		})[0]
		// A launch counts as far as it shows in the shortest time.
		weights[i] = math.Pow(launches[i]/smallestTime(of(q)), 2)
	}
	launches = rising(launches, weights)
	p.Prefill = nil
	last := infinite
	for i, q := range queries {
		rate := refine(of(q), []float64{100e12}, []bound{flopsBound}, func(r []float64, at datum) float64 {
			return seconds(launches[i], r[0], at)
		})[0]
		if i > 0 {
			rate = math.Min(rate, last*float64(q)/float64(queries[i-1])*(1-1e-3))
		}
		last = rate
		p.Prefill = append(p.Prefill, hw.PrefillRow{Query: int(q),
			Launch: from.figure(launches[i]*1e6, "us", "what FLOPs do not explain: launch, and the masked part of the diagonal"),
			Rate:   from.figure(rate*1e-12, "TFLOP/s", "causal prefill kernel")})
	}
	return []model{{name: "prefill_attention", fit: fit, held: held,
		price: func(p *hw.Profile, at datum) float64 { return p.PrefillSeconds(at.model, span(at)) },
		draw:  picture{x: spanFLOPs, xLabel: "FLOPs"}}}
}

// fitStreams fits the kernels that live on bytes: t = max(floor, launch +
// bytes/rate), never faster than HBM.
func fitStreams(s *Samples, p *hw.Profile, from source) []model {
	kvTokens := func(axis string) func(at datum) int64 {
		return func(at datum) int64 { return at.At("batch") * at.At(axis) }
	}
	kvBytes := func(axis string) func(at datum) float64 {
		return func(at datum) float64 {
			return float64(kvTokens(axis)(at) * at.model.LayerKVBytesPerToken())
		}
	}
	blocks := func(at datum) int64 { return at.At("batch") * (at.At("context_tokens") / blockTokens) }
	var models []model
	for _, k := range []struct {
		name, probe, what string
		stream            *hw.Stream
		bytes             func(at datum) float64
		price             func(p *hw.Profile, at datum) float64
	}{
		{"dense_decode", probeDense, "paged dense decode kernel", &p.DenseDecode, kvBytes("context_tokens"),
			func(p *hw.Profile, at datum) float64 {
				return p.DenseDecodeSeconds(at.model, kvTokens("context_tokens")(at))
			}},
		{"sparse_decode", probeSparse, "block-sparse decode kernel", &p.SparseDecode, kvBytes("budget_tokens"),
			func(p *hw.Profile, at datum) float64 {
				return p.SparseDecodeSeconds(at.model, kvTokens("budget_tokens")(at))
			}},
		{"scoring", probeSelect, "scores and top-k in one kernel", &p.Scoring,
			func(at datum) float64 {
				m := at.model
				return float64(blocks(at) * int64(m.KVHeads) * m.MetaBytesPerBlock())
			},
			func(p *hw.Profile, at datum) float64 {
				return p.ScoringSeconds(at.model, blocks(at), int(at.At("batch")))
			}},
	} {
		all := s.of(k.probe)
		fit, held := all.split(func(at datum) string { return at.Shape }, 3, nil)
		heads := func(datum) float64 { return 0 }
		if k.probe == probeSelect {
			heads = func(at datum) float64 { return float64(at.At("batch") * int64(at.model.KVHeads)) }
		}
		*k.stream = fitStream(fit, k.bytes, heads, p.GPU.HBMBandwidth.SI(), k.what, from)
		largest := 0.0
		for _, at := range all {
			largest = math.Max(largest, k.bytes(at))
		}
		k.stream.Largest = from.figure(largest*1e-9, "GB", "the largest point measured")
		models = append(models, model{name: k.name, fit: fit, held: held, price: k.price, draw: picture{x: k.bytes, xLabel: "bytes", rate: k.bytes}})
	}
	return models
}

// fitStream fits t = max(floor, launch + heads perHead + bytes/rate, bytes/hbm);
// heads are 0 where a kernel has no cost of its own for each.
func fitStream(d data, bytes, heads func(datum) float64, hbm float64, what string, from source) hw.Stream {
	floor := infinite
	var sizes []float64
	for _, at := range d {
		floor = math.Min(floor, at.seconds)
		sizes = append(sizes, bytes(at))
	}
	middle := medianOf(sizes).Value
	large := d.where(func(at datum) bool { return bytes(at) >= middle })
	start := linear(large, one, bytes, heads)
	c := refine(d, []float64{floor, math.Max(start[0], floor/3), 1 / math.Max(start[1], 1/hbm), math.Max(start[2], 1e-10)},
		[]bound{floorBound, callBound, {rateBound.low, hbm * 1.05}, blockBound},
		func(c []float64, at datum) float64 {
			return max(c[0], c[1]+heads(at)*c[3]+bytes(at)/c[2], bytes(at)/hbm)
		})
	s := hw.Stream{
		Launch: from.figure(c[1]*1e6, "us", what), Floor: from.figure(c[0]*1e6, "us", what+", few bytes"), Rate: from.figure(c[2]*1e-9, "GB/s", what),
	}
	if heads(d[0]) > 0 {
		s.PerHead = perBlock(c[3], from, what+", for each request and KV head")
	}
	return s
}

// blockTokens is the tokens of a KV block in every attention probe.
const blockTokens = 32
