package calibrate

import (
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/sparseserve/sparseserve/cuda"
)

// Samples of the clock. In a train the card rests, and then runs groups of clockLayers layers of
// linears, each of which is timed.
//
// The card changes its clock in steps at unpredictable times, so the same work has one of several
// times. A sample is therefore the mean of several rounds; there are clockRounds in total.
const (
	restedTime   = 200 * time.Millisecond
	trainTime    = 220 * time.Millisecond // longer than any point's time
	clockRounds  = 10
	clockSamples = 5
	clockLayers  = 4
	restCopies   = 16
	restBytes    = 256 * mib
)

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

// trainKey names measurements whose points have samples of the same rounds.
type trainKey struct {
	shape  string
	tokens int64 // of a layer
}

// trainGroup is the start of a group of a train, in seconds of GPU work since the end of the rest
// (between two groups the GPU waits for their launch), and the time of one layer.
type trainGroup struct{ began, layer float64 }

// prepareTrain runs the point's train, unless it has run for another point.
func (g *gpuBench) prepareTrain(p Point) (Timed, error) {
	key := trainKey{p.Shape, p.At("tokens")}
	rounds, known := g.trains[key]
	if !known {
		if err := g.do(func(g *gpuRun) { rounds = g.runTrain(p) }); err != nil {
			return nil, err
		}
		g.trains[key] = rounds
	}
	return g.rounds(func(_ *gpuRun, i int) float64 { return rounds[i][trainAt(rounds[i], p)].layer }),
		nil
}

// trainAt finds the group of linears that began nearest to the point's time.
func trainAt(groups []trainGroup, p Point) int {
	nearest, after := 0, 1e-3*float64(p.At("after_ms"))
	for i, at := range groups {
		if math.Abs(at.began-after) < math.Abs(groups[nearest].began-after) {
			nearest = i
		}
	}
	return nearest
}

// runTrain lets the card rest and runs groups of linears, clockRounds times.
func (g *gpuRun) runTrain(p Point) [][]trainGroup {
	group := g.pace(slices.Repeat(g.correct(g.linears(g.model(p.Shape), p.At("tokens"))), clockLayers))
	groups := 1
	if p.At("tokens") == clockTokens {
		groups += int(trainTime / max(group.each, 1))
	}
	c := &cuda.MemcpyArgs{Bytes: restBytes, Src: g.zeros(restBytes), Dst: g.zeros(restBytes)}
	rest := g.pace(slices.Repeat([]cuda.Operation{c}, restCopies))
	rounds := make([][]trainGroup, clockRounds)
	for i := range rounds {
		g.runFor(rest, restedTime)
		began := 0.0
		for range groups {
			t := g.once(group.calls)
			rounds[i] = append(rounds[i], trainGroup{began, t / clockLayers})
			began += t
		}
	}
	return rounds
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
