package calibrate

import (
	"errors"
	"fmt"
	"github.com/sparseserve/sparseserve/cuda"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"
)

// How a sample of the clock comes about. In trains the card rests, and then groups of
// calls run one behind another, each timed: linears, clockLayers at a time, or a
// prompt's chunks. Before decodes linears run instead for long enough to lower the clock,
// and the groups are layers of decodes. Else linears run for as long and then not for the
// point's time, and what is timed is as long as the clock may stay high: how much faster
// that is says for how long it did.
//
// The card changes its clock in steps, at times of its own: the same may take the one
// time or the other. So a sample is the mean of some rounds, clockRounds in all.
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

// restBatch are the requests, of restContext tokens, whose decode is a rest.
const (
	restBatch   = 8
	restContext = 8192
)

// prepareClock readies linears, and what the card does between: copies within HBM, on
// which it draws far less, or dense decode attention.
func (g *gpuBench) prepareClock(p Point) (Timed, error) {
	m, err := shapeModel(p.Shape)
	if err != nil {
		return nil, err
	}
	if p.Probe == probeClock || p.Probe == probePrompt {
		return g.prepareTrain(m, p)
	}
	var work, rest paced
	var timed []cuda.Operation
	err = g.lib.Do(func(s *cuda.Session) error {
		calls, err := g.checked(s, func() ([]cuda.Operation, func(*cuda.Session) error, error) { return g.linearsOp(s, m, p.At("tokens")) })
		if err != nil {
			return err
		}
		work.calls = slices.Repeat(calls, clockLayers)
		timed = slices.Repeat(calls, int(p.At("layers")))
		if rest, err = g.restOf(s, p); err != nil {
			return err
		}
		return work.measure(s)
	})
	if err != nil {
		return nil, err
	}
	round := func(s *cuda.Session) error {
		long := time.Duration(p.At("rest_ms")) * time.Millisecond
		return errors.Join(work.run(s, wornTime), rest.run(s, long))
	}
	return g.rounds(func(s *cuda.Session) (float64, error) {
		if err := round(s); err != nil {
			return 0, err
		}
		t, err := s.Bench(cuda.Bench{Calls: timed, Repeats: 1})
		if err != nil {
			return 0, err
		}
		return t[0] * 1e-3 / float64(p.At("layers")), nil
	}), nil
}

// checked readies calls and runs them once, to see that what they compute is right.
func (g *gpuBench) checked(s *cuda.Session, ready func() ([]cuda.Operation, func(*cuda.Session) error, error)) ([]cuda.Operation, error) {
	calls, verify, err := ready()
	if err != nil {
		return nil, err
	}
	if err := s.DeviceSync(); err != nil {
		return nil, err
	}
	return calls, verify(s)
}

// restOf readies what the card does between a point's linears.
func (g *gpuBench) restOf(s *cuda.Session, p Point) (rest paced, err error) {
	switch p.Probe {
	case probeRestedDense, probePrompt:
		d, err := g.setupDecode(s, point(probeDense, p.Shape, restBatch, restContext))
		if err != nil {
			return rest, err
		}
		rest.calls = slices.Repeat(d.bench.Calls, restCopies)
	default:
		c := &cuda.MemcpyArgs{Bytes: restBytes}
		set := g.setter(&err)
		set(&c.Src, func() (cuda.Ptr, error) { return g.zeros(s, restBytes) })
		set(&c.Dst, func() (cuda.Ptr, error) { return g.zeros(s, restBytes) })
		if err != nil {
			return rest, err
		}
		rest.calls = slices.Repeat([]cuda.Operation{c}, restCopies)
	}
	return rest, rest.measure(s)
}

// rounds are all of a point's at its first sample, the later ones dealt out.
func (g *gpuBench) rounds(round func(*cuda.Session) (float64, error)) Timed {
	var ready []float64
	return func(_, repeats int) ([]float64, error) {
		if ready == nil {
			all := make([]float64, clockRounds)
			err := g.lib.Do(func(s *cuda.Session) (err error) {
				for i := range all {
					if all[i], err = round(s); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
			ready = dealtMeans(all, clockSamples)
		}
		if repeats > len(ready) {
			return nil, fmt.Errorf("%d samples asked for, %d are left", repeats, len(ready))
		}
		samples := ready[:repeats]
		ready = ready[repeats:]
		return samples, nil
	}
}

// dealtMeans deals values out to n samples and returns the mean of each.
func dealtMeans(values []float64, n int) []float64 {
	means := make([]float64, n)
	for i := range means {
		var of []float64
		for j := i; j < len(values); j += n {
			of = append(of, values[j])
		}
		means[i] = stat.Mean(of, nil)
	}
	return means
}

// paced are calls whose time is known, so that they can run for a given one.
type paced struct {
	calls []cuda.Operation
	each  time.Duration
}

func (p *paced) measure(s *cuda.Session) error {
	ms, err := s.Bench(cuda.Bench{Calls: p.calls, Warmup: 2, Repeats: 5})
	if err == nil {
		p.each = max(time.Microsecond, time.Duration(medianOf(ms).Value*float64(time.Millisecond)))
	}
	return err
}

// run takes about as long as asked: nothing where that is less than half of what the
// calls take once.
func (p *paced) run(s *cuda.Session, long time.Duration) error {
	n := int(math.Round(float64(long) / float64(p.each)))
	if n == 0 {
		return nil
	}
	_, err := s.Bench(cuda.Bench{Calls: p.calls, Repeats: n})
	return err
}

// setupChunk readies a chunk's layers, which share what power the card may draw.
func (g *gpuBench) setupChunk(s *cuda.Session, p Point) (*setup, error) {
	m, err := shapeModel(p.Shape)
	if err != nil {
		return nil, err
	}
	t, err := g.layersOp(s, m, p.At("tokens"), p.At("prefix_tokens"))
	if err == nil {
		t.settle = g.settling(p) // not twice that: chunks' own points keep the card at their pace, one after another
	}
	return t, err
}
