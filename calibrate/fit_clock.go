package calibrate

import (
	"cmp"
	"fmt"
	"slices"

	"sparseserve/hw"
)

// leastGain is the share of its time that a higher clock must save linears to be
// told from noise.
const leastGain = 0.02

// fitClock finds how much less linears take at the full clock, how far prefill without
// pause lowers it, how it falls and rises again, and what decodes feel of it (hw: clock).
// How far it falls is what chunks of prefill without pause take (hw: lowClock); how fast
// is what linears take some time after a rest, and after rests of some length.
func fitClock(s *Samples, p *hw.Profile, from source) []model {
	p.Clock = hw.Clock{}
	ages := s.of(probeClock).where(func(at datum) bool { return at.At("tokens") == clockTokens })
	rests, chunks := s.of(probeRested), chunkData(s)
	if len(rests) == 0 || len(chunks) == 0 || fallsBy(ages, shapes[0]) < leastGain {
		return nil
	}
	if p.Clock.Gain = gainRows(s, from); len(p.Clock.Gain) == 0 {
		return nil
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
	steady := model{name: "clock", fit: fit, held: held, price: price,
		draw: picture{x: func(at datum) float64 { return 1 + float64(at.At("prefix_tokens")) }, xLabel: "tokens before the chunk"}}
	models := append([]model{steady}, fitRests(s, p, from, ages, rests)...)
	models = append(models, fitDecodes(s, p, from)...)
	if prompts := s.of(probePrompt); len(prompts) > 0 {
		models = append(models, model{
			name: "clock.prompt", held: prompts, why: "chunks behind a rest, by how the clock falls under linears alone: nothing is fitted to them",
			price: func(p *hw.Profile, at datum) float64 {
				return p.PromptSeconds(at.model, int(at.At("tokens")), promptChunks, chunkOf(at.Point))
			},
			draw: picture{x: func(at datum) float64 { return float64(1 + chunkOf(at.Point)) }, xLabel: "chunk of two prompts in a row"},
		})
	}
	return models
}

// fallsBy is the share of their time by which a shape's linears are faster behind a
// rest than without pause; 0 where one of the two was not measured.
func fallsBy(ages data, shape string) float64 {
	of := ages.where(func(at datum) bool { return at.Shape == shape })
	if len(of) < 2 {
		return 0
	}
	return 1 - of[0].seconds/of[len(of)-1].seconds
}

// leastShare of a layer of decodes must go with the clock to be told from noise.
const leastShare = 0.005

// fitDecodes finds how much of a layer of decodes goes with the clock, and how soon that
// is back where decodes' linears run: by how much a layer takes longer behind a prompt's
// linears than long after them. What dense attention does to the clock was found before.
func fitDecodes(s *Samples, p *hw.Profile, from source) []model {
	all := s.of(probeDecodes)
	if len(all) == 0 {
		return nil
	}
	times := all.values("after_ms")
	last := times[len(times)-1]
	own := map[string]float64{} // seconds of a shape's layer long after
	for _, at := range all {
		if at.At("after_ms") == last {
			own[at.Shape] = at.seconds
		}
	}
	price := func(p *hw.Profile, at datum) float64 {
		of := func(ms int64) float64 { return wornDecodeSeconds(p, at, ms) }
		return own[at.Shape] * of(at.At("after_ms")) / of(last)
	}
	share := func(x float64) hw.Figure {
		return from.figure(x, "share", fmt.Sprintf("linears and dense attention of decodes behind linears of %d tokens, against the same %d ms later", clockTokens, last))
	}
	behind := all.where(func(at datum) bool { return at.At("after_ms") < last && own[at.Shape] > 0 })
	fit, held := behind.split(func(at datum) string { return at.Shape }, 2, nil)
	if len(fit) == 0 {
		return nil
	}
	rest := func(ms float64) hw.Figure {
		return from.figure(significant(ms, 4), "ms", "linears of decodes after linears of a prompt, until these begin at the full clock again")
	}
	of := bound{1, 2000}
	c := refine(fit, []float64{0.1, 50}, []bound{{leastShare / 10, 0.99}, of}, func(c []float64, at datum) float64 {
		p.Clock.Decode, p.Clock.RestLinears = share(c[0]), rest(c[1])
		return price(p, at)
	})
	if c[1] < 1.01*of.low || c[1] > 0.99*of.high { // the samples do not tell
		p.Clock.RestLinears = hw.Figure{}
		c = refine(fit, []float64{0.1}, []bound{{leastShare / 10, 0.99}}, func(c []float64, at datum) float64 {
			p.Clock.Decode = share(c[0])
			return price(p, at)
		})
	}
	if c[0] < leastShare {
		p.Clock.Decode, p.Clock.RestLinears = hw.Figure{}, hw.Figure{}
		return nil
	}
	p.Clock.Decode = share(significant(c[0], 3))
	if p.Clock.RestLinears.Set() {
		p.Clock.RestLinears = rest(c[1])
	}
	return []model{{name: "clock.decode", fit: fit, held: held, price: price,
		draw: picture{x: func(at datum) float64 { return float64(at.At("after_ms")) }, xLabel: "ms after linears"}}}
}

// wornDecodeSeconds prices a layer in the middle of the group that begins so many ms
// after linears.
func wornDecodeSeconds(p *hw.Profile, at datum, ms int64) float64 {
	return p.WornDecodeSeconds(at.model, clockTokens, int(at.At("requests")), int(at.At("context_tokens")), 1e-3*float64(ms)+decodesGroup.Seconds()/2)
}

// restsOf is what the card does between linears, by probe.
var restsOf = map[string]hw.Rest{probeRested: hw.RestCopies, probeRestedIdle: hw.RestIdle, probeRestedDense: hw.RestDense}

// fitRests finds how the clock falls and rises.
func fitRests(s *Samples, p *hw.Profile, from source, ages, rests data) []model {
	of := func(ms float64, what string) hw.Figure { return from.figure(significant(ms, 4), "ms", what) }
	set := func(burst, settle, rest float64) {
		p.Clock.Burst = of(burst, fmt.Sprintf("linears of %d tokens after copies within HBM: before they take longer", clockTokens))
		p.Clock.Settle = of(settle, "the same: time constant in which the clock falls")
		p.Clock.Rest = of(rest, "copies within HBM after linears, until these begin at the full clock again")
	}
	price := func(p *hw.Profile, at datum) float64 {
		if at.Probe == probeClock {
			return p.RestedSeconds(at.model, clockTokens, milliseconds(at, "after_ms"), 0, 0, clockLayers)
		}
		return p.RestedSeconds(at.model, clockTokens, 0, milliseconds(at, "rest_ms"), restsOf[at.Probe], int(at.At("layers")))
	}
	all := append(append(data{}, ages...), rests...)
	falling := func(at datum) bool { // when says what no other point does
		if at.Probe != probeClock {
			return false
		}
		of := ages.where(func(other datum) bool { return other.Shape == at.Shape })
		high, low := of[0].seconds, of[len(of)-1].seconds
		way := (at.seconds - high) / (low - high)
		return way > 0.1 && way < 0.9
	}
	fit, held := all.split(func(at datum) string { return at.Probe + at.Shape }, 3, falling)
	c := refine(fit, []float64{40, 20, 15}, []bound{{1, 500}, {1, 500}, {0.1, 5000}}, func(c []float64, at datum) float64 {
		set(c[0], c[1], c[2])
		return price(p, at)
	})
	set(c[0], c[1], c[2])
	for _, r := range []struct {
		probe, what string
		figure      *hw.Figure
	}{{probeRestedIdle, "nothing", &p.Clock.RestIdle}, {probeRestedDense, "dense decode attention", &p.Clock.RestDense}} {
		d := s.of(r.probe)
		if len(d) == 0 {
			continue
		}
		what := r.what + " after linears, until these begin at the full clock again"
		c := refine(d, []float64{15}, []bound{{0.1, 5000}}, func(c []float64, at datum) float64 {
			*r.figure = of(c[0], what)
			return price(p, at)
		})
		*r.figure = of(c[0], what)
		fit = append(fit, d...)
	}
	return []model{{name: "clock.rested", fit: fit, held: held, price: price,
		draw: picture{x: func(at datum) float64 {
			if at.Probe == probeClock {
				return float64(at.At("after_ms"))
			}
			return float64(at.At("rest_ms"))
		}, xLabel: "ms after a rest, or of one"}}}
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
