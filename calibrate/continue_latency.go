package calibrate

import (
	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/hw"
)

// continueLatency is the time from a kernel's end until the CPU has launched the next one: the time
// to submit a kernel and wait for it.
type continueLatency struct{}

func (continueLatency) points(p *planner) { p.add(point(probeSync, "")) }

func (continueLatency) fit(s *Samples, p *hw.Profile, from source) []model {
	p.Host.ContinueLatency = hw.Figure{}
	if sync := s.of(probeSync); len(sync) > 0 {
		p.Host.ContinueLatency = perBlock(
			sync[0].seconds, from, "submitting one kernel and synchronising")
	}
	return nil
}

// setupSync has no result to verify: an empty kernel only takes time.
func (g *gpuRun) setupSync(Point) *setup {
	calls := []cuda.Operation{&cuda.EmptyArgs{}}
	return &setup{bench: cuda.Bench{Calls: calls, Clock: cuda.WallClock}}
}
