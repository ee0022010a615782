package calibrate

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/sparseserve/sparseserve/cuda"
)

// Linears are measured in the state in which other work leaves the card, in rounds. The card
// changes its clock in steps at unpredictable times, so the same work has one of several times. A
// sample is therefore the mean of several rounds; there are clockRounds in total.
//
// In a train the card copies within HBM, and then runs groups of clockLayers layers of linears. In
// place, linears of decodes, which read all weights, run first, and then layers for inPlaceTime, in
// which the clock hardly falls: linears alone, and with the kernels between them.
const (
	clockRounds  = 10
	clockSamples = 5

	restedTime  = 200 * time.Millisecond
	trainTime   = 220 * time.Millisecond // longer than any point's time
	clockLayers = 4
	restCopies  = 16
	restBytes   = 256 * mib

	inPlaceTime   = 5 * time.Millisecond
	decodesBefore = 30 * time.Millisecond
	decodesTokens = 4
	decodesLayers = 8
)

// timedLayers times a group of layers. began is the GPU time from the end of the other work to the
// group, without the waits for launches between groups; layer is the time per layer. Both are in
// seconds.
type timedLayers struct{ began, layer float64 }

// roundsKey names rounds that several points share.
type roundsKey struct {
	shape  string
	tokens int64
	train  bool
}

// prepareRounds runs the rounds of a point, unless they have run for another point, and splits them
// among its samples.
func (g *gpuBench) prepareRounds(p Point) (Timed, error) {
	key := roundsKey{p.Shape, p.At("tokens"), p.Probe == probeClock}
	rounds, known := g.rounds[key]
	if !known {
		run := (*gpuRun).runInPlace
		if key.train {
			run = (*gpuRun).runTrain
		}
		if err := g.do(func(g *gpuRun) { rounds = run(g, p) }); err != nil {
			return nil, err
		}
		g.rounds[key] = rounds
	}
	means := make([]float64, clockSamples)
	for i, round := range rounds {
		means[i%clockSamples] += ofRound(round, p) * clockSamples / clockRounds
	}
	return func(_, repeats int) ([]float64, error) {
		samples := means[:repeats]
		means = means[repeats:]
		return samples, nil
	}, nil
}

// ofRound returns a point's seconds in a round: in a train the layers that began nearest to the
// point's time; in place the linears, or what the kernels between them add.
func ofRound(round []timedLayers, p Point) float64 {
	switch p.Probe {
	case probeAfterDecodes:
		return round[0].layer
	case probeInPlace:
		return math.Max(round[1].layer-round[0].layer, 1e-9)
	}
	after := 1e-3 * float64(p.At("after_ms"))
	return slices.MinFunc(round, func(a, b timedLayers) int {
		return cmp.Compare(math.Abs(a.began-after), math.Abs(b.began-after))
	}).layer
}

// runTrain lets the card copy and runs groups of linears, clockRounds times.
func (g *gpuRun) runTrain(p Point) [][]timedLayers {
	group := g.pace(slices.Repeat(g.correct(g.linears(g.model(p.Shape), p.At("tokens"))), clockLayers))
	groups := 1
	if p.At("tokens") == clockTokens {
		groups += int(trainTime / max(group.each, 1))
	}
	c := &cuda.MemcpyArgs{Bytes: restBytes, Src: g.zeros(restBytes), Dst: g.zeros(restBytes)}
	rest := g.pace(slices.Repeat([]cuda.Operation{c}, restCopies))
	rounds := make([][]timedLayers, clockRounds)
	for i := range rounds {
		g.runFor(rest, restedTime)
		began := 0.0
		for range groups {
			t := g.once(group.calls)
			rounds[i] = append(rounds[i], timedLayers{began, t / clockLayers})
			began += t
		}
	}
	return rounds
}

// runInPlace runs layers after linears of decodes, clockRounds times.
func (g *gpuRun) runInPlace(p Point) [][]timedLayers {
	m := g.model(p.Shape)
	rest := g.pace(slices.Repeat(g.linears(m, decodesTokens).calls, decodesLayers))
	linears, layer := g.layerInPlace(p)
	layers := int(max(1, inPlaceTime/max(g.pace(layer).each, time.Microsecond)))
	rounds := make([][]timedLayers, clockRounds)
	for i := range rounds {
		for _, calls := range [][]cuda.Operation{linears, layer} {
			g.runFor(rest, decodesBefore)
			t := g.once(slices.Repeat(calls, layers)) / float64(layers)
			rounds[i] = append(rounds[i], timedLayers{layer: t})
		}
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

// correct runs calls once and verifies their result.
func (g *gpuRun) correct(c *work) []cuda.Operation {
	if g.sync(); g.err == nil {
		c.verify()
	}
	return c.calls
}

// once returns the time of the calls, in seconds.
func (g *gpuRun) once(calls []cuda.Operation) (seconds float64) {
	g.try(func() error {
		ms, err := g.s.Bench(cuda.Bench{Calls: calls, Repeats: 1})
		if err == nil {
			seconds = ms[0] * 1e-3
		}
		return err
	})
	return seconds
}

// paced are calls with a known time, so that they can run for a given duration.
type paced struct {
	calls []cuda.Operation
	each  time.Duration
}

func (g *gpuRun) pace(calls []cuda.Operation) (p paced) {
	g.try(func() error {
		ms, err := g.s.Bench(cuda.Bench{Calls: calls, Warmup: 2, Repeats: 5})
		if err == nil {
			each := time.Duration(medianOf(ms).Value * float64(time.Millisecond))
			p = paced{calls, max(time.Microsecond, each)}
		}
		return err
	})
	return p
}

// runFor runs the calls for about the given duration. It runs nothing if the duration is less than
// half of one run of the calls.
func (g *gpuRun) runFor(p paced, long time.Duration) {
	n := int(math.Round(float64(long) / float64(max(p.each, 1))))
	if n > 0 {
		g.try(func() error {
			_, err := g.s.Bench(cuda.Bench{Calls: p.calls, Repeats: n})
			return err
		})
	}
}

// setupChunk prepares a chunk's layers, which share the card's power budget.
func (g *gpuRun) setupChunk(p Point) *work {
	return g.chunkLayers(g.model(p.Shape), p.At("tokens"), p.At("prefix_tokens"), 16)
}
