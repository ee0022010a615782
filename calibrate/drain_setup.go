package calibrate

import (
	"slices"

	"github.com/sparseserve/sparseserve/cuda/live"
)

// drainKey identifies a draining server. All its points share the samples of one run; each visit
// has its own run.
type drainKey struct {
	shape  string
	kind   drainConfig
	layers int64
	visit  uint64 // from 1 on; 0 where there is one
}

type drainResult struct {
	times *drainTimes
	err   error
}

// drainSamples is the number of samples of a point: its steps are split among them.
const drainSamples = 3

// draining serves a point with a server of a kind, unless the server has already run for another
// point. steps selects the steps of the point.
func draining(kind drainConfig, steps func(*drainTimes, Point) []float64) func(
	*gpuBench, Point) (Timed, error) {
	return func(g *gpuBench, p Point) (Timed, error) {
		key := drainKey{p.Shape, kind, p.At("layers"), g.prepared[p.Key()]}
		r, known := g.drains[key]
		if !known {
			r.times, r.err = g.serveDrain(p, kind)
			g.drains[key] = r
		}
		if r.err != nil {
			return nil, r.err
		}
		samples, err := dealtMedians(steps(r.times, p))
		if err != nil {
			return nil, err
		}
		return dealt(func() ([]float64, error) { return samples, nil }), nil
	}
}

func (g *gpuBench) serveDrain(p Point, kind drainConfig) (t *drainTimes, err error) {
	c, err := newServerRun(p.Shape, p.At("layers"), kind)
	if err != nil {
		return nil, err
	}
	if err := g.holds(&c.liveCase); err != nil {
		return nil, err
	}
	err = g.onMachine(func(m live.Machine) error {
		t, err = c.times(m)
		return err
	})
	return t, err
}

// steadyAt returns the steady steps of a point's batch.
func (t *drainTimes) steadyAt(p Point) []float64 { return t.steady[int(p.At("requests"))] }

// steps returns the steps of a point on a server of the kind. With chunks, it is the extra time of
// steps that continue a prompt over steady steps.
func (k drainConfig) steps(t *drainTimes, p Point) []float64 {
	n := int(p.At("requests"))
	if !k.chunks {
		return t.steady[n]
	}
	if len(t.steady[n]) == 0 {
		return nil
	}
	usual, longer := medianOf(t.steady[n]).Value, slices.Clone(t.chunks[n])
	for i := range longer {
		longer[i] = max(longer[i]-usual, 1e-9)
	}
	return longer
}
