package hw

import (
	"fmt"
	"math"
)

// Save engines, HBM -> DRAM.
const (
	SaveMemcpy = "memcpy" // one cudaMemcpyAsync per block
	SaveGPU    = "gpu"    // one scatter kernel, which takes SM time from compute
	SaveFlash  = "flash"  // FlashD2H: one memcpy into staging, CPU scatter (SparseServe §3.2.2)
)

// saver prices one layer's saves of n blocks of b bytes each.
//
//	memcpy  t = base + n call + n b / link
//	gpu     t = max(floor, launch + n block + n b / rate); compute loses the
//	        share contention of its speed while the kernel runs
//	flash   t = call + threads wake + n block + n b / min(link, scatter(threads)) +
//	        min(n b, chunk) / max(link, scatter(threads)): the CPU scatters one
//	        chunk while the copy engine brings the next
//
// base, wake, block and chunk are 0 in profiles that do not give them.
// Never below n b / link, nor below the link's nominal speed.
type saver struct {
	engine      string
	call, block float64 // seconds
	floor       float64
	link, rate  float64 // bytes/s
	chunk       float64 // bytes that no other work overlaps
	faster      float64 // bytes/s of the part of flash that rate is not
	contention  float64 // share of compute lost while a save runs
	outside     bool    // more or fewer scatter threads than measured
}

// newSaver takes the number of scatter threads; 0 means the profile's own.
func newSaver(p *Profile, engine string, threads int) (saver, error) {
	s := saver{engine: engine, link: math.Min(p.Link.D2H.SI(), p.Link.Nominal.SI())}
	s.rate = s.link
	switch engine {
	case SaveMemcpy:
		s.call, s.block = p.Save.MemcpyBase.optional(), p.Save.MemcpyCall.SI()
	case SaveGPU:
		s.call, s.block = p.Save.GPULaunch.SI(), p.Save.GPUBlock.optional()
		s.floor = p.Save.GPUFloor.optional()
		s.rate = p.Save.GPURate.SI()
		s.contention = p.Save.Contention.SI()
	case SaveFlash:
		s.call, s.block = p.Save.FlashCall.SI(), p.Save.FlashBlock.optional()
		s.chunk = p.Save.FlashChunk.optional()
		if threads == 0 {
			threads = int(p.Save.Threads.SI())
		}
		if threads < 0 {
			return saver{}, fmt.Errorf("scatter threads: want 1 or more, or 0 for the profile's own, got %d", threads)
		}
		s.call += float64(threads) * p.Save.FlashWake.optional()
		var c curve
		for _, r := range p.Save.Scatter {
			c.add(float64(r.Threads), r.SI())
		}
		var scatter float64
		scatter, s.outside = c.power(float64(threads))
		if below := float64(threads) / c.x[0]; below < 1 {
			scatter *= below // a thread fewer copies a thread's share less
		}
		s.rate, s.faster = math.Min(s.link, scatter), math.Max(s.link, scatter)
	default:
		return saver{}, fmt.Errorf("save engine: want memcpy, gpu or flash, got %q", engine)
	}
	return s, nil
}

// seconds returns the time of n blocks on the link.
func (s *saver) seconds(n, blockBytes int64) float64 {
	if n <= 0 {
		return 0
	}
	bytes := float64(n) * float64(blockBytes)
	t := s.call + float64(n)*s.block + bytes/s.rate
	if s.chunk > 0 {
		t += math.Min(bytes, s.chunk) / s.faster
	}
	return max(t, s.floor, bytes/s.link)
}
