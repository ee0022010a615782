package calibrate

import (
	"math"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/cost"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/internal/stats"
)

// clockTokens are the tokens of a chunk; clockSizes are the sizes at which prefill's linears are
// measured at a high clock.
const clockTokens = 2048

var clockSizes = []int64{512, clockTokens}

// leastGain is the minimum share of time that linears must save at a higher clock to exceed noise.
const leastGain = 0.02

// noGain stands for zero in a row.
const noGain = 1e-3

// fitClock finds the time that linears save at full clock, the clock at which they settle and the
// time in which they do. It uses chunks of prefill without pause, and linears some time after a
// rest. Chunks of other sizes are held out.
func fitClock(s *Samples, p *hw.Profile, from source) []model {
	p.Clock = hw.Clock{}
	ages, chunks := s.of(probeClock).where(ofClockTokens), s.of(probeChunk)
	if len(chunks) == 0 || fallsBy(ages, shapes[0]) < leastGain {
		return nil
	}
	if p.Clock.Gain = gainRows(s, from); len(p.Clock.Gain) == 0 {
		return nil
	}
	chunks, others := chunks.part(ofClockTokens)
	steady, held := chunks.split(byShape, 3, nil)
	held = append(held, others...)
	fallen, agesHeld := ages.split(byShape, 3, nil)
	fitSettling(p, append(append(data{}, steady...), fallen...), from)
	price := func(p *hw.Profile, at observation) float64 {
		return clockPrice(cost.NewClockProbes(p, at.model, blockTokens), at)
	}
	return []model{
		{name: "clock", fit: steady, held: held, price: price},
		{name: "clock.linears", fit: fallen, held: agesHeld, price: price},
	}
}

// fitSettling fits the clock of linears without pause, and the time constant.
func fitSettling(p *hw.Profile, fit data, from source) {
	priced := map[*llm.Model]*cost.ClockProbes{}
	for _, at := range fit {
		if priced[at.model] == nil {
			priced[at.model] = cost.NewClockProbes(p, at.model, blockTokens)
		}
	}
	set := func(c []float64) {
		const what = "chunks of prefill without pause, and linears after a rest: "
		p.Clock.GEMMSteadyRatio = from.figure(stats.Significant(c[0], 3), "share",
			what+"the clock of linears alone that explains their times")
		p.Clock.Settling = from.figure(stats.Significant(c[1], 3), "ms",
			what+"the time constant of the clock")
	}
	start := []float64{0.8, 60}
	set(start)
	set(refine(fit, start, []bound{{0.2, 0.999}, {1, 5000}},
		func(c []float64, at observation) float64 {
			p.Clock.GEMMSteadyRatio.Value, p.Clock.Settling.Value = c[0], c[1]
			return clockPrice(priced[at.model], at)
		}))
}

func ofClockTokens(at observation) bool { return at.At("tokens") == clockTokens }

func clockPrice(c *cost.ClockProbes, at observation) float64 {
	tokens := int(at.At("tokens"))
	if at.Probe == probeChunk {
		return c.Chunk(tokens, int(at.At("prefix_tokens")))
	}
	return c.Linears(tokens, 1e-3*float64(at.At("after_ms")), clockLayers)
}

// fallsBy returns the relative time that a shape's linears save after a rest; 0 if one of the two
// was not measured.
func fallsBy(ages data, shape string) float64 {
	of := ages.ofShape(shape)
	if len(of) < 2 {
		return 0
	}
	return 1 - of[0].seconds/of[len(of)-1].seconds
}

// gainRows returns the share of time that linears save at full clock over linears without pause:
// after decodes, or, where that was not measured, after copies if the gain exceeds noise.
func gainRows(s *Samples, from source) (rows []hw.GainRow) {
	rested, decoded := s.of(probeClock), s.of(probeAfterDecodes)
	rested = rested.with("after_ms", rested.values("after_ms")[0])
	for _, l := range s.of(probeLinears).inOrder() {
		same := func(at observation) bool {
			return at.Shape == l.Shape && at.At("tokens") == l.At("tokens")
		}
		what, gain := "linears after decodes, against the same without pause", 0.0
		if of := decoded.where(same); len(of) > 0 {
			gain = math.Max(noGain, 1-of[0].seconds/l.seconds)
		} else if of := rested.where(same); len(of) > 0 {
			what = "linears after copies within HBM, against the same without pause"
			gain = 1 - of[0].seconds/l.seconds
			if gain < leastGain {
				continue
			}
		} else {
			continue
		}
		rows = append(rows, hw.GainRow{Shape: l.Shape, Tokens: int(l.At("tokens")),
			Figure: from.figure(stats.Significant(gain, 3), "share", what)})
	}
	return rows
}
