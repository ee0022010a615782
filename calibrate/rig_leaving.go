package calibrate

import (
	"fmt"

	"github.com/sparseserve/sparseserve/cuda"
)

// leavingKey is what a server that requests leave is made from; all points of it have their samples of one run, each visit of one of its own.
type leavingKey struct {
	shape  string
	kind   leavingKind
	layers int64
	visit  uint64 // from 1 on; 0 where there is one
}

type leavingResult struct {
	times *leavingTimes
	err   error
}

// leavingSamples are those of each point: the steps of its kind, dealt out.
const leavingSamples = 3

// prepareLeaving runs the point's server, unless it has run for another point.
func (g *rig) prepareLeaving(p Point) (Timed, error) {
	key := leavingKey{p.Shape, p.leavingKind(), p.At("layers"), g.prepared[p.Key()]}
	r, known := g.leaving[key]
	if !known {
		r.times, r.err = g.serveLeaving(p)
		g.leaving[key] = r
	}
	if r.err != nil {
		return nil, r.err
	}
	samples, err := r.times.samples(p)
	if err != nil {
		return nil, err
	}
	return func(_, repeats int) ([]float64, error) {
		if repeats > len(samples) {
			return nil, fmt.Errorf("%d samples asked for, a run has %d", repeats, len(samples))
		}
		out := samples[:repeats]
		samples = samples[repeats:]
		return out, nil
	}, nil
}

func (g *rig) serveLeaving(p Point) (t *leavingTimes, err error) {
	c, err := p.leavingCase()
	if err != nil {
		return nil, err
	}
	if err := g.holds(&c.liveCase); err != nil {
		return nil, err
	}
	err = g.lib.Do(func(s *cuda.Session) error {
		if err := g.pool.grow(s, gib); err != nil {
			return err
		}
		t, err = c.times(&pooled{Machine: s, pool: &g.pool, each: gib})
		return err
	})
	return t, err
}

// samples are those of a point.
func (t *leavingTimes) samples(p Point) ([]float64, error) {
	var steps []float64
	switch p.Probe {
	case probeLiveFreed:
		steps = t.longer()
	default:
		steps = t.steady[int(p.At("requests"))]
	}
	if len(steps) < leavingSamples {
		return nil, fmt.Errorf("%w: %d steps of this kind, %d at least are needed", ErrSkip, len(steps), leavingSamples)
	}
	dealt := make([][]float64, leavingSamples)
	for i, s := range steps {
		dealt[i%leavingSamples] = append(dealt[i%leavingSamples], max(s, 1e-9))
	}
	var samples []float64
	for _, d := range dealt {
		samples = append(samples, medianOf(d).Value)
	}
	return samples, nil
}
