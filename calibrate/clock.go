package calibrate

import (
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/cuda/live"
	"github.com/sparseserve/sparseserve/hw"
)

// clock is the SM clock of the card under the power of prefill.
type clock struct{}

const (
	probeClock         = "clock.linears"
	probePrompt        = "clock.prompt"
	probeRested        = "clock.rested"
	probeRestedDense   = "clock.rested_dense"
	probeRestedPrefill = "clock.rested_prefill"
	probeChunk         = "clock.chunk"
	probeAfterDecodes  = "clock.after_decodes"
)

func (clock) probes() []Probe {
	rested := []string{"tokens", "rest_ms", "layers"}
	return []Probe{
		{Name: probeClock, serve: (*gpuBench).prepareTrain,
			Means: "the same, repeated, after_ms after they began to run without pause; before that " +
				"the card copied within HBM; GPU time of one repetition",
			Axes: []string{"tokens", "after_ms"}, shaped: true, fixed: clockSamples,
			byMean: true},
		{Name: probePrompt, serve: (*gpuBench).prepareTrain,
			Means: "linears and attention of two prompts, chunk by chunk, after prefix_tokens of the " +
				"first or second prompt; before both the card computed dense decodes; GPU time of one layer",
			Axes:   []string{"tokens", "prefix_tokens", "prompt"},
			shaped: true, fixed: clockSamples, byMean: true},
		{Name: probeRested, serve: (*gpuBench).prepareRested,
			Means: "linears that ran without pause, then copies within HBM for rest_ms, " +
				"then linears again: mean GPU time of these layers",
			Axes: rested, shaped: true, fixed: clockSamples, byMean: true},
		{Name: probeRestedDense, serve: (*gpuBench).prepareRested,
			Means: "the same with dense decodes for rest_ms",
			Axes:  rested, shaped: true, fixed: clockSamples, byMean: true},
		{Name: probeRestedPrefill, serve: (*gpuBench).prepareRested,
			Means: "the same with prefill attention for rest_ms",
			Axes:  rested, shaped: true, fixed: clockSamples, byMean: true},
		{Name: probeAfterDecodes, serve: (*gpuBench).prepareInPlace,
			Means: "linears, repeated after the linears of decodes; GPU time of one repetition",
			Axes:  []string{"tokens"}, shaped: true, fixed: clockSamples},
		{Name: probeChunk, setup: (*gpuRun).setupChunk,
			Means: "linears and attention of a prompt's chunk, layer after layer " +
				"without pause; " + gpuTime + " of one layer",
			Axes: []string{"tokens", "prefix_tokens"}, shaped: true,
			again: always, byMean: true},
	}
}

// clockTokens are the tokens of a chunk; clockSizes are the sizes at which prefill's linears are
// measured at a high clock.
const clockTokens = 2048

var clockSizes = []int64{512, clockTokens}

// otherRests are the rests, in ms, of the kinds of rest other than copies.
var otherRests = []int64{20, 80}

// restedLayers last longer than a card keeps its higher clock.
const restedLayers = 40

// afterDecodesSizes returns the tokens of linears after decodes: the live loop's row counts, and
// every second one of the larger.
func afterDecodesSizes() []int64 {
	sizes := onGrid(inPlaceTokens)
	for n := int64(inPlaceTokens + 2*live.LinearGrid); n <= clockTokens; n += 2 * live.LinearGrid {
		sizes = append(sizes, n)
	}
	return sizes
}

// points are linears before the card lowers its clock, linears after a rest, and chunks and decodes
// at the lowered clock.
func (clock) points(p *planner) {
	clocked := pick(p, shapes, shapes[:1])
	after := pick(p, []int64{1, 20, 40, 60, 80, 120, 200}, []int64{1, 100}) // ms of linears
	for _, shape := range clocked {
		for _, n := range clockSizes {
			ages := after
			if n != clockTokens {
				ages = after[:1]
			}
			for _, ms := range ages {
				p.add(stageClock, point(probeClock, shape, n, ms))
			}
			prefixes := pick(p, []int64{0, 2048, 6144}, []int64{2048})
			if n == clockTokens && p.plan != Quick { // mostly attention
				prefixes = append(prefixes, 32768, 65536)
			}
			for _, prefix := range prefixes {
				p.add(stageClock, point(probeChunk, shape, n, prefix))
			}
		}
	}
	for _, shape := range clocked {
		for _, n := range pick(p, afterDecodesSizes(), []int64{128, 512, 1024}) {
			p.add(stageClock, point(probeAfterDecodes, shape, n))
		}
		for prompt := range int64(promptsInARow) {
			for i := range int64(promptChunks) {
				p.add(stageClock, point(probePrompt, shape, clockTokens, i*clockTokens, prompt+1))
			}
		}
	}
	for _, ms := range pick(p, []int64{10, 20, 80, 160}, []int64{20}) {
		p.add(stageClock, point(probeRested, shapes[0], clockTokens, ms, restedLayers))
		if slices.Contains(otherRests, ms) {
			p.add(stageClock, point(probeRestedDense, shapes[0], clockTokens, ms, restedLayers),
				point(probeRestedPrefill, shapes[0], clockTokens, ms, restedLayers))
		}
	}
}

// leastGain is the minimum share of time that linears must save at a higher clock to exceed noise.
const leastGain = 0.02

// noGain stands for zero in a row.
const noGain = 1e-3

// fit finds the time that linears save at full clock, and the parameters of the power limit (hw:
// clock). It uses chunks of prefill without pause, linears some time after a rest, linears after
// rests of several lengths, and a prompt's chunks after a rest.
func (clock) fit(s *Samples, p *hw.Profile, from source) []model {
	p.Clock = hw.Clock{}
	ages := s.of(probeClock).where(ofClockTokens)
	chunks := s.of(probeChunk)
	rests := s.of(probeRested)
	if len(rests) == 0 || len(chunks) == 0 || fallsBy(ages, shapes[0]) < leastGain {
		return nil
	}
	if p.Clock.Gain = gainRows(s, from); len(p.Clock.Gain) == 0 {
		return nil
	}
	// Gains refer to measured linears, and a curve that never falls has others. The models linears.*
	// are judged with the curve, the clock with the measured linears.
	curve, measured := p.Linears, measuredLinears(s)
	p.Linears = measured
	models := fitPower(s, p, from, chunks, ages, rests)
	p.Linears = curve
	for i := range models {
		models[i].price = func(p *hw.Profile, at observation) float64 {
			as := *p
			as.Linears = measured
			return clockSeconds(&as, at)
		}
	}
	return models
}

// measuredLinears returns the rows of all linears as measured, including sizes where more tokens
// cost less.
func measuredLinears(s *Samples) (rows []hw.TokenRow) {
	for _, at := range s.of(probeLinears).inOrder("tokens") {
		rows = append(rows, hw.TokenRow{Shape: at.Shape, Tokens: int(at.At("tokens")),
			Figure: hw.Figure{Value: at.seconds, Unit: "s"}})
	}
	return rows
}

// gainRows returns the share of time that linears save at full clock over linears without pause:
// after decodes, or, where that was not measured, after copies if the gain exceeds noise.
func gainRows(s *Samples, from source) (rows []hw.GainRow) {
	rested, decoded := s.of(probeClock), s.of(probeAfterDecodes)
	first := rested.values("after_ms")[0]
	rested = rested.where(func(at observation) bool { return at.At("after_ms") == first })
	for _, l := range s.of(probeLinears).inOrder("tokens") {
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
			Figure: from.figure(significant(gain, 3), "share", what)})
	}
	return rows
}
