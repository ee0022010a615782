package calibrate

import (
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/sparseserve/sparseserve/cuda"
)

// Samples of the clock. In a train the card rests, and then runs groups of calls, each of which is
// timed: clockLayers layers of linears, or a prompt's chunks. In the other probes linears run long
// enough to lower the clock, then pause for the point's time. The timed linears last as long as the
// clock may stay high, so their speed-up shows how long it did.
//
// The card changes its clock in steps at unpredictable times, so the same work has one of several
// times. A sample is therefore the mean of several rounds; there are clockRounds in total.
const (
	restedTime   = 200 * time.Millisecond
	wornTime     = 200 * time.Millisecond
	trainTime    = 220 * time.Millisecond // longer than any point's time
	clockRounds  = 10
	clockSamples = 5
	clockLayers  = 4
	restCopies   = 16
	restBytes    = 256 * mib
)

// restBatch is the number of requests, with restContext tokens each, whose decode is a rest.
// Attention as a rest has a prefix of restPrefix times its tokens.
const (
	restBatch   = 8
	restContext = 8192
	restPrefix  = 4
)

// prepareRested prepares linears after a rest: copies within HBM, which draw far less power, or
// dense decode attention.
func (g *gpuBench) prepareRested(p Point) (Timed, error) {
	var work, rest paced
	var timed []cuda.Operation
	layers := int(p.At("layers"))
	err := g.do(func(g *gpuRun) {
		calls := g.correct(g.linears(g.model(p.Shape), p.At("tokens")))
		timed = slices.Repeat(calls, layers)
		rest, work = g.restOf(p), g.pace(slices.Repeat(calls, clockLayers))
	})
	if err != nil {
		return nil, err
	}
	return g.rounds(func(g *gpuRun, _ int) float64 {
		g.runFor(work, wornTime)
		g.runFor(rest, time.Duration(p.At("rest_ms"))*time.Millisecond)
		return g.once(timed) / float64(layers)
	}), nil
}

// correct runs calls once and verifies their result.
func (g *gpuRun) correct(c checked) []cuda.Operation {
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

// restOf prepares the work between a point's linears.
func (g *gpuRun) restOf(p Point) paced {
	if p.Probe == probeRestedPrefill {
		n := p.At("tokens")
		c := g.prefill(g.model(p.Shape), n, restPrefix*n, blockTokens)
		return g.pace(slices.Repeat(c.calls, restCopies))
	}
	if p.Probe == probeRestedDense || p.Probe == probePrompt {
		d := g.setupDecode(point(probeDense, p.Shape, restBatch, restContext))
		return g.pace(slices.Repeat(d.bench.Calls, restCopies))
	}
	c := &cuda.MemcpyArgs{Bytes: restBytes, Src: g.zeros(restBytes), Dst: g.zeros(restBytes)}
	return g.pace(slices.Repeat([]cuda.Operation{c}, restCopies))
}

// rounds runs all rounds of a point at its first sample and splits them among the samples.
func (g *gpuBench) rounds(round func(g *gpuRun, i int) float64) Timed {
	return dealt(func() ([]float64, error) {
		all := make([]float64, clockRounds)
		err := g.do(func(g *gpuRun) {
			for i := range all {
				all[i] = round(g, i)
			}
		})
		return dealtMeans(all, clockSamples), err
	})
}

// dealtMeans splits values among n samples and returns the mean of each.
func dealtMeans(values []float64, n int) []float64 {
	return dealtTo(values, n, func(of []float64) float64 { return stat.Mean(of, nil) })
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
func (g *gpuRun) setupChunk(p Point) *setup {
	const layers = 16
	t := g.chunkLayers(g.model(p.Shape), p.At("tokens"), p.At("prefix_tokens"), layers)
	t.settle = g.settling(p) // chunks' own points keep the card at the clock of prefill
	return t
}
