package calibrate

import (
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/cost"
	"github.com/sparseserve/sparseserve/sim"
)

// between reports whether a point is held out of the fit: its query length is no power of two, so
// its last wave of CTAs is partly empty.
func between(at observation) bool { return !powerOfTwo(at.At("query_tokens")) }

func powerOfTwo(n int64) bool { return n&(n-1) == 0 }

func span(at observation) sim.Span {
	return sim.Span{Query: int(at.At("query_tokens")), Prefix: int(at.At("prefix_tokens"))}
}

func spanFLOPs(at observation) float64 { return cost.PrefillFLOPs(at.model, span(at)) }

// kvRead is the minimum that the attention of a chunk reads from HBM, in bytes.
func kvRead(at observation) float64 {
	s := span(at)
	return float64(int64(s.Query+s.Prefix) * at.model.LayerKVBytesPerToken())
}

// blockTokensOf returns the tokens per KV block that a chunk reads after its prefix.
func blockTokensOf(at observation) int {
	if at.Probe == probePrefillBlocks {
		return int(at.At("block_tokens"))
	}
	return blockTokens
}

// wavesOf returns the waves of a chunk's CTAs on the given number of SMs, and the CTAs per SM.
func wavesOf(sms float64, at observation) (waves, filled float64) {
	tiles := math.Ceil(float64(span(at).Query)/prefillRows) * float64(at.model.QHeads)
	return math.Ceil(tiles / sms), tiles / sms
}

// copiesOf returns the number of sequential copies of K and V on the busiest of the given number of
// SMs. It is 0 where a chunk reads contiguous tensors.
func copiesOf(sms float64, at observation) float64 {
	s := span(at)
	if s.Prefix == 0 || sms == 0 {
		return 0
	}
	waves, _ := wavesOf(sms, at)
	keys := float64(s.Prefix) + float64(s.Query)/2
	return waves * 2 * keys / float64(min(64, blockTokensOf(at)))
}

// prefillRow is one hw.PrefillRow: launch in seconds, rate in FLOP/s.
type prefillRow struct{ launch, rate float64 }

// fitPrefillAttention fits t = launch(q) + hypot(FLOPs / rate(q), copies * copy) for each query
// length, within the limits of the profile: launches rise, and rates grow no faster than the query
// length. All chunks share one copy time. Chunks over blocks of 32 tokens and query lengths that
// are no power of two are held out.
func fitPrefillAttention(s *Samples, p *hw.Profile, from source) []model {
	all, blocks := s.of(probePrefill), s.of(probePrefillBlocks)
	others, all := all.part(between)
	others = append(others, blocks.with("block_tokens", blockTokens)...)
	// Launch time shows only without a prefix, so the fit keeps these points of one shape.
	fit, held := all.split(byAxis("query_tokens"), 2, func(at observation) bool {
		return at.At("prefix_tokens") == 0 && at.Shape == all[0].Shape
	})
	price := func(p *hw.Profile, at observation) float64 {
		t, _ := cost.PrefillSeconds(p, at.model, nil, span(at), blockTokensOf(at))
		return t
	}
	queries, sms := all.values("query_tokens"), s.sms()
	rows, each := fitPrefillRows(fit, queries, p, sms, 0), 0.0
	launch := func(q int64) float64 { return launchAt(rows, queries, q) }
	for range copyRounds {
		each = copyTime(blocks, sms, launch)
		rows = fitPrefillRows(fit, queries, p, sms, each)
	}
	p.Prefill, p.Paged = nil, hw.PagedPrefill{}
	for i, q := range queries {
		p.Prefill = append(p.Prefill, hw.PrefillRow{Query: int(q),
			Launch: from.us(rows[i].launch,
				"what FLOPs do not explain: launch, and the masked part of the diagonal"),
			Rate: from.figure(rows[i].rate*1e-12, "TFLOP/s", "causal prefill kernel")})
	}
	if sms > 0 {
		// the probe's lengths are powers of two and do not show that one more row block starts a wave
		p.Paged.Rows = hw.Figure{Value: prefillRows, Unit: "tokens", From: hw.Derived,
			Source: "queries of a CTA of the prefill kernel, cuda/prefill.cu"}
		if each > 0 {
			p.Paged.Copy = from.figure(each*1e9, "ns",
				"prefill over KV blocks of 16 and of 64 tokens: what more copies cost, without FLOPs")
		}
		if rate := waveRate(fit, sms, each, launch); rate > 0 {
			p.Paged.Rate = from.figure(rate*1e-12, "TFLOP/s",
				"chunks after a prefix with about one CTA an SM, else the fastest, whole waves counted")
		}
	}
	return []model{{name: "prefill_attention", fit: fit, held: append(held, others...), price: price}}
}

// copyRounds is the number of iterations: launches and copy time depend on each other.
const copyRounds = 3

// copyTime returns the time of one copy: the median over all pairs of equal chunks with blocks of
// 16 and of 64 tokens. Without the launch, the difference of the squared times equals the
// difference of the squared copy times. With at most one CTA per SM a CTA waits for its own copies,
// which take twice as long.
func copyTime(blocks data, sms float64, launch func(q int64) float64) float64 {
	var each []float64
	for _, b := range blocks {
		for _, a := range blocks {
			if a.Shape != b.Shape || span(a) != span(b) || a.At("block_tokens") != 16 ||
				b.At("block_tokens") != 64 {
				continue
			}
			if _, filled := wavesOf(sms, a); filled <= 1 {
				each = append(each, a.seconds/(2*copiesOf(sms, a)))
				continue
			}
			l, more, fewer := launch(a.At("query_tokens")), copiesOf(sms, a), copiesOf(sms, b)
			if d := math.Pow(a.seconds-l, 2) - math.Pow(b.seconds-l, 2); d > 0 && more > fewer {
				each = append(each, math.Sqrt(d/(more*more-fewer*fewer)))
			}
		}
	}
	if len(each) == 0 {
		return 0
	}
	return medianOf(each).Value
}

// launchAt returns the launch time of a query length, or 0 if it has no row.
func launchAt(rows []prefillRow, queries []int64, q int64) float64 {
	if i := slices.Index(queries, q); i >= 0 {
		return rows[i].launch
	}
	return 0
}

// fitPrefillRows fits launches and rates for a copy time of each seconds.
func fitPrefillRows(fit data, queries []int64, p *hw.Profile, sms, each float64) []prefillRow {
	of := func(q int64) data { return fit.with("query_tokens", q) }
	seconds := func(launch, rate float64, at observation) float64 {
		return launch + math.Max(math.Hypot(spanFLOPs(at)/rate, copiesOf(sms, at)*each),
			kvRead(at)/p.GPU.HBMBandwidth.SI())
	}
	launchBound, flopsBound := bound{1e-6, 1e-2}, bound{1e9, 1e16}
	launches, weights := make([]float64, len(queries)), make([]float64, len(queries))
	for i, q := range queries {
		c := linear(of(q), one, spanFLOPs)
		launches[i] = refine(of(q), []float64{c[0], 1 / math.Max(c[1], 1e-15)},
			[]bound{launchBound, flopsBound}, func(c []float64, at observation) float64 {
				return seconds(c[0], c[1], at)
			})[0]
		// Weight a launch by its share of the shortest time.
		weights[i] = math.Pow(launches[i]/smallestTime(of(q)), 2)
	}
	launches = rising(launches, weights)
	rows, last := make([]prefillRow, len(queries)), infinite
	for i, q := range queries {
		rate := refine(of(q), []float64{100e12}, []bound{flopsBound},
			func(r []float64, at observation) float64 {
				return seconds(launches[i], r[0], at)
			})[0]
		if i > 0 {
			rate = math.Min(rate, last*float64(q)/float64(queries[i-1])*(1-1e-3))
		}
		last, rows[i] = rate, prefillRow{launches[i], rate}
	}
	return rows
}

// prefillRows is the number of query tokens per CTA of the prefill kernel (cuda/prefill.cu).
const prefillRows = 128

// leastFull is the minimum share of SMs that a chunk must fill to measure a whole wave's rate.
const leastFull = 0.9

// waveRate returns the FLOP/s of CTAs on all SMs: the median over chunks with a prefix and about
// one CTA per SM. Without such a chunk it is the maximum over all chunks, counted in whole waves,
// so that no measured chunk is faster than the model. Launch and copy time are subtracted. It is 0
// without chunks after a prefix.
func waveRate(fit data, sms, each float64, launch func(q int64) float64) float64 {
	var full, all []float64
	for _, at := range fit {
		s := span(at)
		t, copies := at.seconds-launch(int64(s.Query)), copiesOf(sms, at)*each
		rest := t*t - copies*copies
		if s.Prefix == 0 || t <= 0 || rest <= 0 {
			continue
		}
		waves, filled := wavesOf(sms, at)
		keys := float64(s.Prefix) + float64(s.Query)/2
		rate := waves * sms * 4 * float64(at.model.HeadDim) * prefillRows * keys / math.Sqrt(rest)
		if all = append(all, rate); filled <= 1 && filled >= leastFull {
			full = append(full, rate)
		}
	}
	switch {
	case len(full) > 0:
		return medianOf(full).Value
	case len(all) > 0:
		return slices.Max(all)
	}
	return 0
}
