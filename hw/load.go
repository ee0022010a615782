package hw

import (
	"fmt"
	"math"
	"strings"
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
	for _, e := range loadEngines {
		if e.name == engine {
			e.costs(&l, &p.Load)
			return l, nil
		}
	}
	return loader{}, fmt.Errorf("load engine: want %s, got %q", strings.Join(LoadEngines(), " or "), engine)
}

// loadEngines are the load engines that a configuration can name. Another is a function that
// sets what its loads cost, and an entry here.
var loadEngines = []struct {
	name  string
	costs func(*loader, *Loading)
}{
	{LoadMemcpy, memcpyLoads},
	{LoadFlash, flashLoads},
}

// LoadEngines names the load engines.
func LoadEngines() []string {
	var names []string
	for _, e := range loadEngines {
		names = append(names, e.name)
	}
	return names
}

func memcpyLoads(l *loader, f *Loading) {
	l.copies = newCopies(f.MemcpyBase, f.MemcpyCall, f.MemcpyPools)
	l.copies.early, l.copies.first = f.MemcpyEarly.optional(), f.MemcpyFirst.optional()
}

func flashLoads(l *loader, f *Loading) {
	l.call, l.block = f.FlashLaunch.SI(), f.FlashBlock.optional()
	l.floor = f.FlashFloor.optional()
	for _, r := range f.Flash {
		l.rate.add(r.PoolGiB*(1<<30), r.SI())
	}
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
