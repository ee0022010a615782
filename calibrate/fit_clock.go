package calibrate

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"sparseserve/hw"
)

// leastGain is the share of its time that a higher clock must save linears to be
// told from noise.
const leastGain = 0.02

// fitClock finds how much less linears take before the card lowers its clock, for how
// long it does not, and what a rest gives back (hw: clock), from the times at both ends
// and where those between cross the middle. A sample after a rest is the mean over its
// layers, the first of which run at the full clock until what the rest gave is used up.
// How far the clock falls is what chunks of prefill without pause take (hw: lowClock).
func fitClock(s *Samples, p *hw.Profile, from source) []model {
	p.Clock = hw.Clock{}
	ages := s.of(probeClock).where(func(at datum) bool { return at.Shape == shapes[0] && at.At("tokens") == clockTokens })
	rests, chunks := s.of(probeRested), chunkData(s)
	if len(ages) < 2 || len(rests) == 0 || len(chunks) == 0 {
		return nil
	}
	high, low := ages[0].seconds, ages[len(ages)-1].seconds
	gain := 1 - high/low
	if gain < leastGain {
		return nil
	}
	share := func(t float64) float64 { return math.Min(math.Max((low-t)/(low-high), 0), 1) } // at the higher clock
	burst := 0.0
	for i := range ages[1:] {
		a, b := share(ages[i].seconds), share(ages[i+1].seconds)
		if x, y := milliseconds(ages[i], "after_ms"), milliseconds(ages[i+1], "after_ms"); a >= 0.5 && b < 0.5 {
			burst = x + (y-x)*(a-0.5)/(a-b)
			break
		}
	}
	// restOf is the rest of which a time gives back burst that explains some samples best.
	restOf := func(rests data) float64 {
		rest := 0.0
		for least, rate := math.Inf(1), 1e-3; rate < 10; rate *= 1.02 {
			misfit := 0.0
			for _, at := range rests {
				timed := float64(at.At("layers")) * high
				given := math.Min(math.Min(burst, timed), rate*milliseconds(at, "rest_ms"))
				misfit += math.Pow(given-share(at.seconds)*timed, 2)
			}
			if misfit < least {
				least, rest = misfit, burst/rate
			}
		}
		return rest
	}
	gains := gainRows(s, from)
	if burst == 0 || len(gains) == 0 {
		return nil
	}
	what := fmt.Sprintf("linears of %d tokens after copies within HBM", clockTokens)
	p.Clock = hw.Clock{
		Gain:  gains,
		Burst: from.figure(burst*1e3, "ms", what+": until half of what they are faster is lost"),
		Rest:  from.figure(restOf(rests)*1e3, "ms", "copies within HBM after linears, until these have all of it again"),
	}
	if d := s.of(probeRestedIdle); len(d) > 0 {
		p.Clock.RestIdle = from.figure(restOf(d)*1e3, "ms", "nothing after linears, until these have all of it again")
	}
	if d := s.of(probeRestedDense); len(d) > 0 {
		p.Clock.RestDense = from.figure(restOf(d)*1e3, "ms", "dense decode attention after linears, until these have all of it again")
	}
	alone := func(share float64) hw.Figure {
		return from.figure(share, "share", "linears and prefill attention of chunks without pause, whose times this clock of linears alone explains")
	}
	fit, held := chunks.split(func(at datum) string { return at.Shape }, 3, nil)
	price := func(p *hw.Profile, at datum) float64 {
		return p.ChunkSeconds(at.model, int(at.At("tokens")), int(at.At("prefix_tokens")))
	}
	c := refine(fit, []float64{0.7}, []bound{{0.2, 0.999}}, func(c []float64, at datum) float64 {
		p.Clock.Alone = alone(c[0])
		return price(p, at)
	})
	p.Clock.Alone = alone(significant(c[0], 3))
	return []model{{name: "clock", fit: fit, held: held, price: price,
		draw: picture{x: func(at datum) float64 { return 1 + float64(at.At("prefix_tokens")) }, xLabel: "tokens before the chunk"}}}
}

// chunkData are chunks of prefill without pause. Samples from before there was a probe
// of them have the chunks that saves were measured beside.
func chunkData(s *Samples) data {
	chunks := s.of(probeChunk)
	if len(chunks) > 0 {
		return chunks
	}
	for _, at := range s.of(probeLayersNone) {
		at.seconds /= float64(at.At("layers"))
		at.Point = point(probeChunk, at.Shape, at.At("chunk_tokens"), at.At("prefix_tokens"))
		chunks = append(chunks, at)
	}
	return chunks
}

// gainRows are how much less time linears take after a rest than without pause, at
// each size that was measured both ways and at which that can be told from noise.
func gainRows(s *Samples, from source) (rows []hw.GainRow) {
	rested := s.of(probeClock)
	first := rested.values("after_ms")[0]
	for _, at := range rested.where(func(at datum) bool { return at.At("after_ms") == first }) {
		for _, l := range s.of(probeLinears) {
			gain := 1 - at.seconds/l.seconds
			if l.Shape == at.Shape && l.At("tokens") == at.At("tokens") && gain >= leastGain {
				share := from.figure(significant(gain, 3), "share", "linears after copies within HBM, against the same without pause")
				rows = append(rows, hw.GainRow{Shape: at.Shape, Tokens: int(at.At("tokens")), Figure: share})
			}
		}
	}
	slices.SortFunc(rows, func(a, b hw.GainRow) int {
		return cmp.Or(cmp.Compare(a.Shape, b.Shape), cmp.Compare(a.Tokens, b.Tokens))
	})
	return rows
}

func milliseconds(at datum, axis string) float64 { return 1e-3 * float64(at.At(axis)) }
