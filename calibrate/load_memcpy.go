package calibrate

import (
	"fmt"
	"math"

	"github.com/sparseserve/sparseserve/hw"
)

// loadMemcpy is loading with one cudaMemcpyAsync per block.
type loadMemcpy struct{}

const probeLoadMemcpy = "load.memcpy"

func (loadMemcpy) probes() []Probe {
	return []Probe{{Name: probeLoadMemcpy, setup: (*gpuRun).setupLoad,
		Means: "one memcpy a block, blocks anywhere in a pinned pool; " + wall,
		Axes:  []string{"block_bytes", "blocks", "pool_mib"}, needed: true,
		again: always}}
}

// points vary block size and count in the base pool; other pools have two counts.
func (loadMemcpy) points(p *planner) {
	const block, most, least = 16 * kib, 2048, 256
	for i, pool := range p.pools() {
		if pool == basePool {
			p.eachTransfer(func(block, n int64) {
				p.addAt(stageLoad, rank{i, 0}, point(probeLoadMemcpy, "", block, n, pool))
			})
		} else if most*block <= min(p.mostMoved(), pool*mib) {
			for _, n := range []int64{most, least} {
				p.addAt(stageLoad, rank{i, 2}, point(probeLoadMemcpy, "", block, n, pool))
			}
		}
	}
}

// fit needs the link's rate. Other pool sizes only yield a note (pools), because their effect is
// too small for the model.
func (loadMemcpy) fit(s *Samples, p *hw.Profile, from source) []model {
	link := math.Min(p.Link.H2D.SI(), p.Link.Nominal.SI())
	fit, held := inPool(s.of(probeLoadMemcpy), basePool).split(byAxis("block_bytes"), 2, nil)
	fitCalls(fit, link).figures(from, &p.Load.MemcpyBase, &p.Load.MemcpyCall)
	return []model{loadModel("load.memcpy", hw.LoadMemcpy, fit, held)}
}

// pools notes the relative time of copies in the largest host pool over the base pool.
func pools(s *Samples) (notes []string) {
	all := s.of(probeLoadMemcpy)
	sizes := all.values("pool_mib")
	if len(sizes) == 0 {
		return nil
	}
	most := sizes[len(sizes)-1]
	for _, at := range inPool(all, most) {
		for _, base := range inPool(all, basePool) {
			if most != basePool && otherAxes(at, "pool_mib") == otherAxes(base, "pool_mib") {
				notes = append(notes, fmt.Sprintf("%s over a pool of %s, over the same of %s: %.2f",
					probeLoadMemcpy, size(most*mib), size(basePool*mib), at.seconds/base.seconds))
			}
		}
	}
	return notes
}
