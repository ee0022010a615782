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
	return []Probe{{Name: probeSync, Means: "an empty kernel; " + wall, Kernel: "ss_empty", again: always}}
}

func (continueLatency) points(p *planner) { p.add(stageLaunch, point(probeSync, "")) }

func (continueLatency) prepare(g *gpuBench, p Point) (Timed, error) {
	return g.ready(p, func(*gpuRun, Point) *setup {
		return &setup{bench: cuda.Bench{Calls: []cuda.Operation{&cuda.EmptyArgs{}}, Clock: cuda.WallClock}}
	})
}

func (continueLatency) fit(s *Samples, p *hw.Profile, from source) []model {
	p.Host.ContinueLatency = hw.Figure{}
	if sync := s.of(probeSync); len(sync) > 0 {
		p.Host.ContinueLatency = perBlock(sync[0].seconds, from, "submitting one kernel and synchronising")
	}
	return nil
}
