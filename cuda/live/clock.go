package live

import (
	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/live/queue"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// clock splits a step's time by GPU events: the time between two marks belongs to the phase of the
// later one. An event costs microseconds, and a decode step of 32 layers has about 190, so not
// every step is split.
type clock struct {
	q      *queue.Queue
	stream cuda.Stream
	on     bool
	events []cuda.Event
	phases []phase
}

// phase returns the field of metrics.Phases that a span of time belongs to.
type phase func(*metrics.Phases) *des.Time

func phaseLinears(p *metrics.Phases) *des.Time { return &p.Linears }
func phasePrefill(p *metrics.Phases) *des.Time { return &p.PrefillAttention }
func phasePrefillIndex(p *metrics.Phases) *des.Time {
	return &p.PrefillIndex
}
func phaseDense(p *metrics.Phases) *des.Time     { return &p.DenseAttention }
func phaseSparse(p *metrics.Phases) *des.Time    { return &p.SparseAttention }
func phaseScoring(p *metrics.Phases) *des.Time   { return &p.Scoring }
func phaseLoadStall(p *metrics.Phases) *des.Time { return &p.LoadStall }
func phaseSaveStall(p *metrics.Phases) *des.Time { return &p.SaveStall }
func phaseHead(p *metrics.Phases) *des.Time      { return &p.Head }
func phaseHost(p *metrics.Phases) *des.Time      { return &p.Host }

// start begins a step; on reports whether it is split.
func (c *clock) start(on bool) {
	c.on = on
	c.phases = c.phases[:0]
	c.mark(nil)
}

// mark ends a phase.
func (c *clock) mark(p phase) {
	if !c.on {
		return
	}
	if len(c.phases) == len(c.events) {
		e, err := c.q.EventCreate(true)
		if err != nil {
			c.q.Fail(err)
			return
		}
		c.events = append(c.events, e)
	}
	c.phases = append(c.phases, p)
	_ = c.q.EventRecord(c.events[len(c.phases)-1], c.stream)
}

// split returns the step's phases; the stream is idle. The time outside of the GPU's events is the
// host's.
func (c *clock) split(elapsed des.Time) (metrics.Phases, error) {
	var p metrics.Phases
	if !c.on {
		p.Unsplit = elapsed
		return p, nil
	}
	for i := 1; i < len(c.phases); i++ {
		ms, err := c.q.EventMilliseconds(c.events[i-1], c.events[i])
		if err != nil {
			return p, err
		}
		*c.phases[i](&p) += des.Time(ms * float64(des.Millisecond))
	}
	p.Host += elapsed - p.Sum()
	return p, nil
}
