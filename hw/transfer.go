package hw

import (
	"fmt"
	"math"
)

// Engines that move blocks between HBM and host memory.
const (
	LoadMemcpy = "memcpy" // one cudaMemcpyAsync per block
	LoadFlash  = "flash"  // FlashH2D: one gather kernel (SparseServe §3.2.1)

	SaveMemcpy = "memcpy" // one cudaMemcpyAsync per block
	SaveGPU    = "gpu"    // one scatter kernel, which takes SM time from compute
	SaveFlash  = "flash"  // FlashD2H: one memcpy into staging, CPU scatter (SparseServe §3.2.2)
)

// transfer prices one layer's loads or saves of n blocks of b bytes each, B = n b:
//
//	t = max(floor, launch + n block + B / rate + copies(n) + min(B, chunk) / fill, B / link)
//
// An engine sets some of the terms; the others are 0. rate is never above the link's.
type transfer struct {
	engine        string
	launch, block float64 // seconds
	floor         float64
	copies        copies
	chunk, fill   float64 // bytes that are copied and scattered in turn; bytes/s of the faster
	link, rate    float64 // bytes/s
	rates         curve   // host pool bytes, bytes/s: rate, where it depends on the pool
	contention    float64 // share of compute lost during a transfer
	outside       bool    // more or fewer threads than measured
}

// newLoader prices an engine's loads.
func newLoader(p *Profile, engine string) (transfer, error) {
	link := math.Min(p.Link.H2D.SI(), p.Link.Nominal.SI())
	t := transfer{engine: engine, link: link, rate: link}
	switch engine {
	case LoadMemcpy:
		t.copies = newLoadCopies(&p.Load)
	case LoadFlash:
		t.flashH2D(&p.Load)
	default:
		return transfer{}, fmt.Errorf("load engine: want memcpy or flash, got %q", engine)
	}
	return t, nil
}

// newSaver prices an engine's saves; 0 threads means the profile's own. overlapped is the same
// while prefill is computed.
func newSaver(p *Profile, engine string, threads int) (t, overlapped transfer, err error) {
	link := math.Min(p.Link.D2H.SI(), p.Link.Nominal.SI())
	t = transfer{engine: engine, link: link, rate: link}
	switch engine {
	case SaveMemcpy:
		f := &p.Save
		t.copies = newCopies(f.MemcpyBase, f.MemcpyCall, nil)
		overlapped = t
		if len(f.MemcpyOverlappedPools) > 0 {
			overlapped.copies = newCopies(f.MemcpyBase, f.MemcpyCall, f.MemcpyOverlappedPools)
		}
		return t, overlapped, nil
	case SaveGPU:
		t.gpuScatter(&p.Save)
	case SaveFlash:
		err = t.flashD2H(p, threads)
	default:
		err = fmt.Errorf("save engine: want memcpy, gpu or flash, got %q", engine)
	}
	return t, t, err
}

// over sets the host pool that blocks are in and reports whether it is larger than any that
// was measured.
func (t *transfer) over(poolBytes int64) (outside bool) {
	if len(t.rates.x) > 0 {
		t.rate, _ = t.rates.logLinear(math.Max(float64(poolBytes), 1))
		outside = float64(poolBytes) > t.rates.last()
	}
	return t.copies.over(poolBytes) || outside
}

// seconds returns the time of n blocks on the link.
func (t *transfer) seconds(n, blockBytes int64) float64 {
	if n <= 0 {
		return 0
	}
	bytes := float64(n) * float64(blockBytes)
	s := t.launch + float64(n)*t.block + bytes/t.rate + t.copies.seconds(n)
	if t.chunk > 0 {
		s += math.Min(bytes, t.chunk) / t.fill
	}
	return max(s, t.floor, bytes/t.link)
}
