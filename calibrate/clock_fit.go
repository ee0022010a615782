package calibrate

import "github.com/sparseserve/sparseserve/hw"

// clockFigure is a figure of the clock that is fitted jointly with others.
type clockFigure struct {
	figure     *hw.Figure
	unit, what string
	start      float64
	of         bound
}

// fitPower fits all figures of the card's power control jointly, because each probe depends on
// several. Chunks of other sizes and the second of two consecutive prompts are held out.
func fitPower(s *Samples, p *hw.Profile, from source, chunks, ages, rests data) []model {
	dense, prompts := s.of(probeRestedDense), s.of(probePrompt)
	k := &p.Clock
	draws := bound{0.05, 0.99}
	figures := []clockFigure{
		{&k.GEMMSteadyRatio, "share",
			"chunks of prefill without pause, linears after rests and a prompt's chunks after one: the " +
				"clock of linears alone that explains their times", 0.8, bound{0.2, 0.999}},
		{&k.PowerFilter, "ms", "the same: time constant of the power that the card measures", 15,
			bound{1, 500}},
		{&k.FrequencySlew, "ms",
			"the same: in which power that is off by the limit would take the whole clock", 120,
			bound{5, 5000}},
		{&k.CopyPower, "share", "the same: what copies within HBM draw, of the card's limit", 0.5, draws},
	}
	if len(dense) > 0 {
		figures = append(figures,
			clockFigure{&k.MemoryBoundPower, "share",
				"the same: what memory-bound kernels draw, as dense decode attention does, of the card's limit",
				0.8, draws})
	}

	steady, held := chunks.where(ofClockTokens).split(
		func(at observation) string { return at.Shape }, 3, nil)
	steadyHeld := append(held,
		chunks.where(func(at observation) bool { return !ofClockTokens(at) })...)
	rested, restedHeld := append(append(data{}, ages...), rests...).split(
		func(at observation) string { return at.Probe + at.Shape }, 3, falling(ages))
	rested = append(append(rested, dense...), s.of(probeRestedPrefill)...)
	first, second := prompts.where(func(at observation) bool { return at.At("prompt") == 1 }),
		prompts.where(func(at observation) bool { return at.At("prompt") > 1 })

	fit := append(append(append(data{}, steady...), rested...), first...)
	priced := map[*hw.Model]*hw.ClockProbes{}
	for _, at := range fit {
		if priced[at.model] == nil {
			priced[at.model] = hw.NewClockProbes(p, at.model, blockTokens)
		}
	}
	set := func(c []float64) {
		for i, f := range figures {
			*f.figure = from.figure(c[i], f.unit, f.what)
		}
	}
	var start []float64
	var bounds []bound
	for _, f := range figures {
		start, bounds = append(start, f.start), append(bounds, f.of)
	}
	set(start)
	c := refine(fit, start, bounds, func(c []float64, at observation) float64 {
		for i, f := range figures {
			f.figure.Value = c[i]
		}
		return clockPrice(priced[at.model], at)
	})
	for i := range c {
		c[i] = significant(c[i], 3)
	}
	set(c)

	models := []model{
		{name: "clock", fit: steady, held: steadyHeld, price: clockSeconds,
			draw: picture{x: func(at observation) float64 { return 1 + float64(at.At("prefix_tokens")) },
				xLabel: "tokens before the chunk"}},
		{name: "clock.rested", fit: rested, held: restedHeld, price: clockSeconds,
			draw: picture{x: func(at observation) float64 {
				if at.Probe == probeClock {
					return float64(at.At("after_ms"))
				}
				return float64(at.At("rest_ms"))
			}, xLabel: "ms after a rest, or of one"}},
	}
	if len(prompts) > 0 {
		models = append(models, model{name: "clock.prompt", fit: first, held: second, price: clockSeconds,
			draw: picture{x: func(at observation) float64 { return float64(1 + chunkOf(at.Point)) },
				xLabel: "chunk of two prompts in a row"}})
	}
	return models
}

func ofClockTokens(at observation) bool { return at.At("tokens") == clockTokens }

// clockSeconds returns the price of a point of the clock's probes.
func clockSeconds(p *hw.Profile, at observation) float64 {
	return clockPrice(hw.NewClockProbes(p, at.model, blockTokens), at)
}

func clockPrice(c *hw.ClockProbes, at observation) float64 {
	tokens := int(at.At("tokens"))
	switch at.Probe {
	case probeChunk:
		return c.Chunk(tokens, int(at.At("prefix_tokens")))
	case probePrompt:
		return c.Prompt(tokens, promptChunks, chunkOf(at.Point)+1)
	case probeClock:
		return c.Rested(tokens, milliseconds(at, "after_ms"), 0, 0, clockLayers)
	default:
		return c.Rested(tokens, 0, milliseconds(at, "rest_ms"), restsOf[at.Probe], int(at.At("layers")))
	}
}

// falling reports the ages of linears that no neighbour predicts, because the clock is changing.
func falling(ages data) func(at observation) bool {
	return func(at observation) bool {
		if at.Probe != probeClock {
			return false
		}
		of := ages.where(func(other observation) bool { return other.Shape == at.Shape })
		high, low := of[0].seconds, of[len(of)-1].seconds
		way := (at.seconds - high) / (low - high)
		return way > 0.1 && way < 0.9
	}
}

// fallsBy returns the relative time that a shape's linears save after a rest; 0 if one of the two
// was not measured.
func fallsBy(ages data, shape string) float64 {
	of := ages.where(func(at observation) bool { return at.Shape == shape })
	if len(of) < 2 {
		return 0
	}
	return 1 - of[0].seconds/of[len(of)-1].seconds
}

// restsOf is the kind of rest between linears, by probe.
var restsOf = map[string]hw.Rest{probeRested: hw.RestCopies, probeRestedDense: hw.RestDense,
	probeRestedPrefill: hw.RestPrefill}

func milliseconds(at observation, axis string) float64 { return 1e-3 * float64(at.At(axis)) }
