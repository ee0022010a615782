package hw

import (
	"fmt"
	"math"
)

// Load engines, DRAM -> HBM.
const (
	LoadMemcpy  = "memcpy"  // one cudaMemcpyAsync per block
	LoadBatched = "batched" // one cudaMemcpyBatchAsync per layer
	LoadFlash   = "flash"   // FlashH2D: one gather kernel (SparseServe §3.2.1)
)

// loader prices one layer's loads of n blocks of b bytes each.
//
//	memcpy   t = base + start min(1, b/whole) + n (call + early first/(n + first)) + B / link, B = n b
//	batched  t = call + block(b) (n + early min(n, first)) + B / link
//	flash    t = max(floor, launch + n block + B / rate(pool))
//
// base, start, early and flash's block are 0 in profiles that do not give them; a
// batched copy's block is one figure, or rows by block size.
//
// A gather that is launched while the GPU works waits for nobody: its launch is
// then queued, less idle where the GPU's lookup has the launch of a gather of
// nothing in its own price. Profiles without queued price it as one alone.
//
// rate falls, and the call of a memcpy a block grows, with the size of the host
// pool (TLB reach), straight in log size; where it is known how a layer's loads lie,
// with what they look up instead (copies.lie). Never below n b / link, nor below the
// link's nominal speed.
type loader struct {
	engine      string
	call, block float64 // seconds
	floor       float64
	queued      float64 // seconds; 0: as alone
	idle        float64 // seconds of a queued gather of nothing
	early       float64 // share of a block's cost
	first       float64 // blocks
	copies      copies
	link        float64 // bytes/s
	rate        curve   // pool bytes, bytes/s
	sizes       curve   // block bytes, seconds
}

func newLoader(p *Profile, engine string) (loader, error) {
	l := loader{engine: engine, link: math.Min(p.Link.H2D.SI(), p.Link.Nominal.SI())}
	switch engine {
	case LoadMemcpy:
		f := &p.Load
		l.copies = newCopies(f.MemcpyBase, f.MemcpyCall, f.MemcpyStart, f.MemcpyWhole, f.MemcpyPools)
		l.copies.early, l.copies.first = f.MemcpyEarly.optional(), f.MemcpyFirst.optional()
	case LoadBatched:
		l.call, l.block = p.Load.BatchedCall.SI(), p.Load.BatchedBlock.SI()
		l.early, l.first = p.Load.BatchedEarly.optional(), p.Load.BatchedFirst.optional()
		for _, r := range p.Load.BatchedSizes {
			l.sizes.add(float64(r.BlockBytes), r.SI())
		}
	case LoadFlash:
		l.call, l.block = p.Load.FlashLaunch.SI(), p.Load.FlashBlock.optional()
		l.floor = p.Load.FlashFloor.optional()
		l.queued, l.idle = p.Load.FlashQueued.optional(), p.Load.FlashIdle.optional()
		for _, r := range p.Load.Flash {
			l.rate.add(r.PoolGiB*(1<<30), r.SI())
		}
	default:
		return loader{}, fmt.Errorf("load engine: want memcpy, batched or flash, got %q", engine)
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
	block := l.block
	if len(l.sizes.x) > 0 {
		block, _ = l.sizes.logLinear(float64(blockBytes))
	}
	counted := float64(n) + l.early*math.Min(float64(n), l.first)
	t := l.call + counted*block + bytes/rate + l.copies.seconds(n, blockBytes)
	return max(t, l.floor, bytes/l.link)
}

// queuedSeconds is seconds behind other work of the GPU; looked says that the
// GPU's lookup was priced with the launch of a gather.
func (l *loader) queuedSeconds(n, blockBytes int64, rate float64, looked bool) float64 {
	if l.queued == 0 {
		return l.seconds(n, blockBytes, rate)
	}
	behind := *l
	behind.call, behind.floor = l.queued, 0
	if looked {
		behind.call -= l.idle
	}
	return behind.seconds(n, blockBytes, rate)
}
