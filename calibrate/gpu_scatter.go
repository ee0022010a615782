package calibrate

import (
	"math"

	"github.com/sparseserve/sparseserve/hw"
)

// gpuScatter is saving with one scatter kernel.
type gpuScatter struct{}

const probeSaveGPU = "save.gpu"

func (gpuScatter) probes() []Probe {
	return []Probe{{Name: probeSaveGPU, setup: (*gpuRun).setupSave,
		Means: "one scatter kernel, to blocks anywhere in a pinned pool; " + wall,
		Axes:  []string{"block_bytes", "blocks", "pool_mib"}, needed: true}}
}

func (gpuScatter) points(p *planner) {
	p.eachTransfer(func(block,
		n int64) {
		p.add(stageGPUScatter, point(probeSaveGPU, "", block, n, basePool))
	})
}

// fit needs the link's rate.
func (gpuScatter) fit(s *Samples, p *hw.Profile, from source) []model {
	link := math.Min(p.Link.D2H.SI(), p.Link.Nominal.SI())
	fit, held := s.of(probeSaveGPU).split(byAxis("block_bytes"), 2, nil)
	k := fitKernel(fit, link)
	p.Save.GPULaunch = from.us(k.launch, "one scatter kernel: submit and wait")
	p.Save.GPUFloor = from.us(k.floor, "one scatter kernel of few blocks")
	p.Save.GPURate = from.gbps(k.rate, "one scatter kernel, blocks anywhere in a pinned pool of 1 GiB")
	return []model{saveModel("save.gpu", hw.SaveGPU, fit, held)}
}
