package calibrate

import (
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/hw/llm"
)

// governor is a card's clock, integrated in steps of 20 us: df/dt = (target - f)/settling.
type governor struct{ f, settling float64 }

const governed = 20e-6

// layer is one layer's work at the full clock. Attention is compute bound, so its time goes with
// 1/f, and draws the limit; linears take `scaled` longer for each unit of 1/f - 1.
type layer struct{ linears, scaled, attention, hot float64 }

func (l layer) at(f float64) float64 { return l.linears + l.scaled*(1/f-1) + l.attention/f }

func (l layer) power(f float64) float64 {
	share := l.attention / f / l.at(f)
	return l.hot*(1-share) + share
}

// run computes layers and returns the mean time of a layer.
func (g *governor) run(l layer, layers int) float64 {
	elapsed, done, target := 0.0, 0.0, l.steady()
	for done < float64(layers) {
		dt := min(governed, (float64(layers)-done)*l.at(g.f))
		done += dt / l.at(g.f)
		g.f += dt * (target - g.f) / g.settling
		elapsed += dt
	}
	return elapsed / float64(layers)
}

// steady is the clock, found by bisection, at which the layer draws the limit.
func (l layer) steady() float64 {
	low, high := 0.1, 1.0
	for range 60 {
		if f := (low + high) / 2; f*l.power(f) > 1 {
			high = f
		} else {
			low = f
		}
	}
	return high
}

// chunkLayer is the linears of a chunk, with attention where prefix is not negative. Without pause
// linears settle at the ratio's clock, where they take as long as measured.
func (t *machine) chunkLayer(p Point, m *llm.Model, prefix float64) layer {
	tokens := p.At("tokens")
	gain := t.gainAt(p.Shape, tokens)
	measured := t.linears(m, float64(tokens))
	l := layer{
		linears: measured * (1 - gain), scaled: measured * gain / (1/t.clock.ratio - 1),
		hot: 1 / t.clock.ratio,
	}
	if prefix >= 0 {
		l.attention = t.prefill(m, float64(tokens), prefix, blockTokens)
	}
	return l
}

// gainAt interpolates between clockSizes in the logarithm of the tokens, and is constant beyond.
func (t *machine) gainAt(shape string, tokens int64) float64 {
	of := t.clock.gain[slices.Index(shapes, shape)]
	few, many := float64(clockSizes[0]), float64(clockSizes[1])
	n := min(max(float64(tokens), few), many)
	return of[0] + (of[1]-of[0])*math.Log(n/few)/math.Log(many/few)
}

func (t *machine) clockPoint(p Point, m *llm.Model) float64 {
	if p.Probe == probeChunk {
		l := t.chunkLayer(p, m, float64(p.At("prefix_tokens")))
		return l.at(l.steady())
	}
	l, g := t.chunkLayer(p, m, -1), governor{1, t.clock.settling}
	for ran := 0.0; ran < float64(p.At("after_ms"))*1e-3; {
		ran += g.run(l, 1)
	}
	return g.run(l, clockLayers)
}
