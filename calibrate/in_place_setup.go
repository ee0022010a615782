package calibrate

import (
	"math"
	"slices"
	"time"

	"github.com/sparseserve/sparseserve/cuda"
)

// Timing of a layer's linears, and of the kernels between them, in a step after decodes: linears of
// decodes, which read all weights, run for a time, and then layers for inPlaceTime, in which the
// clock hardly falls.
const (
	inPlaceTime   = 5 * time.Millisecond
	decodesBefore = 30 * time.Millisecond
	decodesTokens = 4
	decodesLayers = 8
)

// inPlaceRound is the time of one layer, in seconds: linears alone, and with the kernels between
// them.
type inPlaceRound struct{ linears, layer float64 }

// prepareInPlace prepares a point of either kind, from the same rounds.
func (g *gpuBench) prepareInPlace(p Point) (Timed, error) {
	key := trainKey{p.Shape, p.At("tokens")}
	rounds, known := g.inPlace[key]
	if !known {
		if err := g.do(func(g *gpuRun) { rounds = g.runInPlace(p) }); err != nil {
			return nil, err
		}
		g.inPlace[key] = rounds
	}
	return g.rounds(func(_ *gpuRun, i int) float64 {
		if p.Probe == probeAfterDecodes {
			return rounds[i].linears
		}
		return math.Max(rounds[i].layer-rounds[i].linears, 1e-9)
	}), nil
}

func (g *gpuRun) runInPlace(p Point) []inPlaceRound {
	m := g.model(p.Shape)
	rest := g.pace(slices.Repeat(g.linears(m, decodesTokens).calls, decodesLayers))
	linears, layer := g.layerInPlace(p)
	layers := int(max(1, inPlaceTime/max(g.pace(layer).each, time.Microsecond)))
	linears, layer = slices.Repeat(linears, layers), slices.Repeat(layer, layers)
	after := func(calls []cuda.Operation) float64 {
		g.runFor(rest, decodesBefore)
		return g.once(calls) / float64(layers)
	}
	rounds := make([]inPlaceRound, clockRounds)
	for i := range rounds {
		rounds[i] = inPlaceRound{after(linears), after(layer)}
	}
	return rounds
}

// layerInPlace returns a layer's linears, and the same with the kernels between them, without
// attention. Weights are scaled so that outputs stay as large as inputs.
func (g *gpuRun) layerInPlace(p Point) (linears, layer []cuda.Operation) {
	m, n := g.model(p.Shape), p.At("tokens")
	own := g.linears(m, n)
	var l [4]cuda.LinearArgs // QKV, O, gate and up, down
	for i := range l {
		l[i] = *own.calls[i].(*cuda.LinearArgs)
		in := int64(l[i].In)
		g.launch(&cuda.FillArgs{Dst: l[i].W, Count: in * int64(l[i].Out), Seed: g.r.Uint64(),
			Scale: float32(math.Sqrt(3 / float64(in)))})
	}
	linears = g.correct(own)
	c := g.pointwise(m, n)
	c.rope.args.QKV, c.norm.X, c.silu.X, c.again.X = l[0].Y, l[1].Y, l[2].Y, l[3].Y
	c.again.Out = g.random(n * int64(m.Hidden)) // the first layer reads it
	l[0].X, l[2].X, l[3].X = c.again.Out, c.norm.Out, c.silu.Out
	layer = []cuda.Operation{&l[0], &c.rope.args, &l[1], &c.norm, &l[2], &c.silu, &l[3], &c.again}
	g.launch(layer...)
	g.checkPointwise(c)
	return linears, layer
}
