package calibrate

import (
	"cmp"
	"math"
	"slices"

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
		price := func(p *hw.Profile, at observation) float64 { return transferPrice(p, m.engine, at) }
		if m.call != nil {
			blocks := func(at observation) float64 { return float64(at.At("blocks")) }
			fitTerms(fit, from, each(blocks, m.call(p), 0, "a copy of its own for each block"),
				known(func(at observation) float64 { return moved(at) / link }))
		} else {
			m.fitKernel(fit, link, p, from, price)
		}
		models = append(models, model{name: m.probe, fit: fit, held: held, price: price})
	}
	return models
}

// fitKernel fits the kernel in the base pool, and a gather kernel's rate in each other one.
func (m *mover) fitKernel(fit data, link float64, p *hw.Profile, from source,
	price func(*hw.Profile, observation) float64) {
	base := fit.with("pool_mib", basePool)
	first, start := smallestTime(base), linear(base, one, moved)
	what := "one " + m.kernel + " kernel"
	const gathers = "gather kernel, blocks anywhere in a pinned pool of this size"
	floor := free{&p.Load.FlashFloor, first, floorBound, from.us, what + " of few blocks"}
	launch := free{&p.Load.FlashLaunch, math.Max(start[0], first/2), callBound, from.us,
		what + ": submit and wait"}
	rate := free{nil, 1 / math.Max(start[1], 1/link/2), bound{rateBound.low, link * 1.2}, from.gbps,
		gathers}
	if m.save {
		floor.figure, launch.figure, rate.figure = &p.Save.GPUFloor, &p.Save.GPULaunch, &p.Save.GPURate
		rate.what = what + ", blocks anywhere in a pinned pool of 1 GiB"
		fitPrices(base, p, price, floor, launch, rate)
		return
	}
	p.Load.Flash = []hw.PoolRow{{PoolGiB: basePool / 1024}}
	rate.figure = &p.Load.Flash[0].Figure
	fitPrices(base, p, price, floor, launch, rate)
	rows := p.Load.Flash
	rate.start = rows[0].SI()
	for _, pool := range fit.values("pool_mib") {
		if pool != basePool {
			p.Load.Flash = []hw.PoolRow{{PoolGiB: float64(pool) / 1024}}
			rate.figure = &p.Load.Flash[0].Figure
			fitPrices(fit.with("pool_mib", pool), p, price, rate)
			rows = append(rows, p.Load.Flash[0])
		}
	}
	slices.SortFunc(rows, func(a, b hw.PoolRow) int { return cmp.Compare(a.PoolGiB, b.PoolGiB) })
	p.Load.Flash = rows
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
