package live

import (
	"sparseserve/cuda"
	"sparseserve/sim"
	"sparseserve/sim/des"
)

// clock splits a step's time by GPU events: what passes between two marks belongs to the phase that the later one names. An event costs about two
// microseconds, and a decode step of 32 layers has some 190, so not every step is split.
type clock struct {
	m      Machine
	stream cuda.Stream
	on     bool
	events []cuda.Event
	phases []phase
}

// phase picks the field of sim.Phases that a span of time belongs to.
type phase func(*sim.Phases) *des.Time

func phaseLinears(p *sim.Phases) *des.Time   { return &p.Linears }
func phasePrefill(p *sim.Phases) *des.Time   { return &p.PrefillAttention }
func phaseDense(p *sim.Phases) *des.Time     { return &p.DenseAttention }
func phaseSparse(p *sim.Phases) *des.Time    { return &p.SparseAttention }
func phaseScoring(p *sim.Phases) *des.Time   { return &p.Scoring }
func phaseLoadStall(p *sim.Phases) *des.Time { return &p.LoadStall }
func phaseSaveStall(p *sim.Phases) *des.Time { return &p.SaveStall }
func phaseHead(p *sim.Phases) *des.Time      { return &p.Head }
func phaseHost(p *sim.Phases) *des.Time      { return &p.Host }

// start begins a step that is split or not.
func (c *clock) start(on bool) error {
	c.on = on
	c.phases = c.phases[:0]
	return c.mark(nil)
}

// mark ends a phase.
func (c *clock) mark(p phase) error {
	if !c.on {
		return nil
	}
	if len(c.phases) == len(c.events) {
		e, err := c.m.EventCreate()
		if err != nil {
			return err
		}
		c.events = append(c.events, e)
	}
	c.phases = append(c.phases, p)
	return c.m.EventRecord(c.events[len(c.phases)-1], c.stream)
}

// split returns the step's phases; the stream is idle. What the GPU did not see is the host's.
func (c *clock) split(elapsed des.Time) (sim.Phases, error) {
	var p sim.Phases
	if !c.on {
		p.Unsplit = elapsed
		return p, nil
	}
	for i := 1; i < len(c.phases); i++ {
		ms, err := c.m.EventMilliseconds(c.events[i-1], c.events[i])
		if err != nil {
			return p, err
		}
		*c.phases[i](&p) += des.Time(ms * float64(des.Millisecond))
	}
	p.Host += elapsed - p.Sum()
	return p, nil
}

func (c *clock) close() error {
	for _, e := range c.events {
		if err := c.m.EventDestroy(e); err != nil {
			return err
		}
	}
	c.events = nil
	return nil
}
