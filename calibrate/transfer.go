package calibrate

import (
	"math"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/cost"
)

// mover is an engine that moves blocks between HBM and a pinned pool of the host, by a call for
// each block or by one kernel:
//
//	t = n call + B/link        t = max(floor, launch + B/rate, B/link)
//
// FlashD2H, whose CPU threads scatter, is in flash_d2h.go.
type mover struct {
	probe, engine string
	save          bool
	pools         bool // the pool is read in place, so its size matters
	call          func(*hw.Profile) *hw.Figure
	kernel        string // gather | scatter
}

var movers = []mover{
	{probe: probeLoadMemcpy, engine: cost.LoadMemcpy,
		call: func(p *hw.Profile) *hw.Figure { return &p.Load.MemcpyCall }},
	{probe: probeLoadFlash, engine: cost.LoadFlash, pools: true, kernel: "gather"},
	{probe: probeSaveMemcpy, engine: cost.SaveMemcpy, save: true,
		call: func(p *hw.Profile) *hw.Figure { return &p.Save.MemcpyCall }},
	{probe: probeSaveGPU, engine: cost.SaveGPU, save: true, kernel: "scatter"},
}

// fitMoving needs the link's rates.
func fitMoving(s *Samples, p *hw.Profile, from source) (models []model) {
	for _, m := range movers {
		all, group, fewest := s.of(m.probe), byAxis("block_bytes"), 2
		if m.pools {
			fewest = 1
			group = func(at observation) string {
				return byAxis("pool_mib")(at) + " " + byAxis("block_bytes")(at)
			}
		} else {
			all = all.with("pool_mib", basePool)
		}
		link := loadLink(p)
		if m.save {
			link = saveLink(p)
		}
		fit, held := all.split(group, fewest, nil)
		if m.call != nil {
			blocks := func(at observation) float64 { return float64(at.At("blocks")) }
			fitTerms(fit, from, each(blocks, m.call(p), 0, "a copy of its own for each block"),
				known(func(at observation) float64 { return moved(at) / link }))
		} else {
			m.fitKernel(fit, link, p, from)
		}
		models = append(models, model{name: m.probe, fit: fit, held: held,
			price: func(p *hw.Profile, at observation) float64 { return transferPrice(p, m.engine, at) }})
	}
	return models
}

// fitKernel fits the kernel in the base pool, and a gather kernel's rate in each other one.
func (m *mover) fitKernel(fit data, link float64, p *hw.Profile, from source) {
	base := fit.with("pool_mib", basePool)
	first, start := smallestTime(base), linear(base, one, moved)
	rates := bound{rateBound.low, link * 1.2}
	seconds := func(c []float64, at observation) float64 {
		return max(c[0], c[1]+moved(at)/c[2], moved(at)/link)
	}
	c := refine(base, []float64{first, math.Max(start[0], first/2), 1 / math.Max(start[1], 1/link/2)},
		[]bound{floorBound, callBound, rates}, seconds)
	what := "one " + m.kernel + " kernel"
	floor, launch := from.us(c[0], what+" of few blocks"), from.us(c[1], what+": submit and wait")
	if m.save {
		p.Save.GPULaunch, p.Save.GPUFloor = launch, floor
		p.Save.GPURate = from.gbps(c[2], what+", blocks anywhere in a pinned pool of 1 GiB")
		return
	}
	p.Load.FlashLaunch, p.Load.FlashFloor, p.Load.Flash = launch, floor, nil
	for _, pool := range fit.values("pool_mib") {
		rate := c[2]
		if pool != basePool {
			rate = refine(fit.with("pool_mib", pool), []float64{c[2]}, []bound{rates},
				func(r []float64, at observation) float64 {
					return seconds([]float64{c[0], c[1], r[0]}, at)
				})[0]
		}
		p.Load.Flash = append(p.Load.Flash,
			hw.PoolRow{PoolGiB: float64(pool) / 1024,
				Figure: from.gbps(rate, "gather kernel, blocks anywhere in a pinned pool of this size")})
	}
}

func loadLink(p *hw.Profile) float64 { return math.Min(p.Link.H2D.SI(), p.Link.Nominal.SI()) }

func saveLink(p *hw.Profile) float64 { return math.Min(p.Link.D2H.SI(), p.Link.Nominal.SI()) }

// basePool is the pool, in MiB, at which block sizes and counts are varied.
const basePool = 1024

func moved(at observation) float64 { return float64(at.At("blocks") * at.At("block_bytes")) }

// transferPrice prices a point as the modelled device does. Points of saves without threads use the
// profile's number of threads.
func transferPrice(p *hw.Profile, engine string, at observation) (t float64) {
	blocks, bytes, pool, threads := at.At("blocks"), at.At("block_bytes"), at.At("pool_mib")*mib, 0
	var err error
	switch at.Probe {
	case probeLoadMemcpy, probeLoadFlash:
		t, err = cost.LoadSeconds(p, engine, blocks, bytes, pool)
	case probeSaveFlash:
		threads = int(at.At("threads"))
		fallthrough
	default:
		t, err = cost.SaveSeconds(p, engine, blocks, bytes, pool, threads)
	}
	must(err)
	return t
}
