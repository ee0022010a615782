package calibrate

import (
	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/hw"
)

// continueLatency is how long after a kernel's end the CPU has the next one under way: the time of
// submitting one and waiting for it.
type continueLatency struct{}

const probeSync = "launch.sync"

func (continueLatency) probes() []Probe {
	return []Probe{{Name: probeSync, setup: (*gpuRun).setupSync, Means: "an empty kernel; " + wall,
		again: always}}
}

func (continueLatency) points(p *planner) { p.add(stageLaunch, point(probeSync, "")) }

func (continueLatency) fit(s *Samples, p *hw.Profile, from source) []model {
	p.Host.ContinueLatency = hw.Figure{}
	if sync := s.of(probeSync); len(sync) > 0 {
		p.Host.ContinueLatency = perBlock(
			sync[0].seconds, from, "submitting one kernel and synchronising")
	}
	return nil
}

// setupSync has nothing to verify: only time comes of an empty kernel.
func (g *gpuRun) setupSync(Point) *setup {
	calls := []cuda.Operation{&cuda.EmptyArgs{}}
	return &setup{bench: cuda.Bench{Calls: calls, Clock: cuda.WallClock}}
}
