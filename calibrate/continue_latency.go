package calibrate

import (
	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/hw"
)

func fitContinueLatency(s *Samples, p *hw.Profile, from source) []model {
	p.Host.ContinueLatency = hw.Figure{}
	if sync := s.of(probeSync); len(sync) > 0 {
		p.Host.ContinueLatency = perPart(sync[0].seconds, noBlock, from,
			"submitting one kernel and synchronising")
	}
	return nil
}

// setupSync has no result to verify: an empty kernel only takes time.
func (g *gpuRun) setupSync(Point) *work { return &work{calls: []cuda.Operation{&cuda.EmptyArgs{}}} }
