package hw

import (
	"fmt"
	"math"
)

// Load engines, DRAM -> HBM.
const (
	LoadMemcpy = "memcpy" // one cudaMemcpyAsync per block
	LoadFlash  = "flash"  // FlashH2D: one gather kernel (SparseServe §3.2.1)
)

// loader prices one layer's loads of n blocks of b bytes each.
//
//	memcpy  t = base + n (call + early first/(n + first)) + B / link, B = n b
//	flash   t = max(floor, launch + n block + B / rate(pool))
//
// base, early and flash's block are 0 in profiles that do not give them.
//
// rate falls, and the call of a memcpy a block grows, with the size of the host
// pool (TLB reach), straight in log size; where it is known how a layer's loads lie,
// with what they look up instead (copies.lie). Never below n b / link, nor below the
// link's nominal speed.
type loader struct {
	engine      string
	call, block float64 // seconds
	floor       float64
	copies      copies
	link        float64 // bytes/s
	rate        curve   // pool bytes, bytes/s
}

func newLoader(p *Profile, engine string) (loader, error) {
	l := loader{engine: engine, link: math.Min(p.Link.H2D.SI(), p.Link.Nominal.SI())}
	switch engine {
	case LoadMemcpy:
		f := &p.Load
		l.copies = newCopies(f.MemcpyBase, f.MemcpyCall, f.MemcpyPools)
		l.copies.early, l.copies.first = f.MemcpyWarmup.optional(), f.MemcpyWarmupBlocks.optional()
	case LoadFlash:
		l.call, l.block = p.Load.FlashLaunch.SI(), p.Load.FlashBlock.optional()
		l.floor = p.Load.FlashFloor.optional()
		for _, r := range p.Load.Flash {
			l.rate.add(r.PoolGiB*(1<<30), r.SI())
		}
	default:
		return loader{}, fmt.Errorf("load engine: want memcpy or flash, got %q", engine)
	}
	return l, nil
}

// rateAt returns the streaming rate over a host pool of the given size and
// whether the pool is larger than any that was measured.
func (l *loader) rateAt(poolBytes int64) (rate float64, outside bool) {
	if l.engine != LoadFlash {
		return l.link, false
	}
	rate, _ = l.rate.logLinear(math.Max(float64(poolBytes), 1))
	return rate, float64(poolBytes) > l.rate.last()
}

// seconds returns the time of n blocks at a streaming rate of rateAt.
func (l *loader) seconds(n, blockBytes int64, rate float64) float64 {
	if n <= 0 {
		return 0
	}
	bytes := float64(n) * float64(blockBytes)
	t := l.call + float64(n)*l.block + bytes/rate + l.copies.seconds(n)
	return max(t, l.floor, bytes/l.link)
}
