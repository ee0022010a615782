package calibrate

import (
	"math"

	"github.com/sparseserve/sparseserve/hw"
)

// saveMemcpy is saving with one cudaMemcpyAsync a block.
type saveMemcpy struct{}

const probeSaveMemcpy = "save.memcpy"

func (saveMemcpy) probes() []Probe {
	return []Probe{{Name: probeSaveMemcpy, setup: (*gpuRun).setupSave,
		Means: "one memcpy a block, to blocks anywhere in a pinned pool; " + wall,
		Axes:  []string{"block_bytes", "blocks", "pool_mib"}, needed: true,
		again: always}}
}

func (saveMemcpy) points(p *planner) {
	p.eachTransfer(func(block,
		n int64) {
		p.add(stageSaveMemcpy, point(probeSaveMemcpy, "", block, n, basePool))
	})
}

// fit needs the link's rate.
func (saveMemcpy) fit(s *Samples, p *hw.Profile, from source) []model {
	link := math.Min(p.Link.D2H.SI(), p.Link.Nominal.SI())
	fit, held := s.of(probeSaveMemcpy).split(byAxis("block_bytes"), 2, nil)
	fitCalls(fit, link).figures(from, &p.Save.MemcpyBase, &p.Save.MemcpyCall)
	return []model{saveModel("save.memcpy", hw.SaveMemcpy, fit, held)}
}
