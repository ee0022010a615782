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
//	memcpy  t = base + n call + B / link, B = n b; where prefill is computed meanwhile
//	        call has rows of its own
//	gpu     t = max(floor, launch + n block + B / rate); compute loses the
//	        share contention of its speed while the kernel runs
//	flash   t = call + B / min(link, scatter(threads)) + min(B, chunk) / max(link, scatter(threads)):
//	        the CPU scatters one chunk while the copy engine brings the next, and either
//	        waits for the other at the ends of a save
//
// Never below n b / link, nor below the link's nominal speed.
type saver struct {
	engine      string
	call, block float64 // seconds
	floor       float64
	chunk, fill float64 // bytes that are copied and scattered one after the other; bytes/s of the faster
	copies      copies
	beside      copies  // the same where prefill is computed meanwhile
	link, rate  float64 // bytes/s
	contention  float64 // share of compute lost while a save runs
	outside     bool    // more or fewer scatter threads than measured
}

// newSaver takes the number of scatter threads; 0 means the profile's own.
func newSaver(p *Profile, engine string, threads int) (saver, error) {
	s := saver{engine: engine, link: math.Min(p.Link.D2H.SI(), p.Link.Nominal.SI())}
	s.rate = s.link
	switch engine {
	case SaveMemcpy:
		f := &p.Save
		s.copies = newCopies(f.MemcpyBase, f.MemcpyCall, nil)
		s.beside = s.copies
		if len(f.MemcpyOverlappedPools) > 0 {
			s.beside = newCopies(f.MemcpyBase, f.MemcpyCall, f.MemcpyOverlappedPools)
		}
	case SaveGPU:
		s.call, s.block = p.Save.GPULaunch.SI(), p.Save.GPUBlock.optional()
		s.floor = p.Save.GPUFloor.optional()
		s.rate = p.Save.GPURate.SI()
		s.contention = p.Save.Contention.SI()
	case SaveFlash:
		s.call = p.Save.FlashCall.SI()
		if threads == 0 {
			threads = int(math.Min(p.Save.Threads.SI(), p.CPU.Cores.SI()))
		}
		if threads < 0 {
			return saver{}, fmt.Errorf("scatter threads: want 1 or more, or 0 for the profile's own, got %d", threads)
		}
		var scatter curve
		for _, r := range p.Save.Scatter {
			scatter.add(float64(r.Threads), r.SI())
		}
		s.rate, s.outside = scatter.power(float64(threads))
		if below := float64(threads) / scatter.x[0]; below < 1 {
			s.rate *= below // a thread fewer copies a thread's share less
		}
		s.chunk, s.fill = p.Save.FlashChunk.optional(), math.Max(s.link, s.rate)
		s.rate = math.Min(s.link, s.rate)
	default:
		return saver{}, fmt.Errorf("save engine: want memcpy, gpu or flash, got %q", engine)
	}
	return s, nil
}

// over sets what a memcpy a block takes over a host pool of some size.
func (s *saver) over(poolBytes int64) {
	s.copies.over(poolBytes)
	s.beside.over(poolBytes)
}

// besidePrefill returns the time of n blocks on the link while prefill is
// computed, whatever that computes: what a call takes alone says little of it. GEMMSteadyRatio,
// the driver copies in a fast way or a slow one, as it happens; beside prefill it is
// the slow one for most steps. Layers' saves follow one another without pause there,
// and a longer batch costs no more a block than a shorter one.
func (s *saver) besidePrefill(n, blockBytes int64) float64 {
	return s.secondsOf(&s.beside, n, blockBytes)
}

// seconds returns the time of n blocks on the link.
func (s *saver) seconds(n, blockBytes int64) float64 {
	return s.secondsOf(&s.copies, n, blockBytes)
}

func (s *saver) secondsOf(c *copies, n, blockBytes int64) float64 {
	if n <= 0 {
		return 0
	}
	bytes := float64(n) * float64(blockBytes)
	t := s.call + float64(n)*s.block + bytes/s.rate + c.seconds(n)
	if s.chunk > 0 {
		t += math.Min(bytes, s.chunk) / s.fill
	}
	return max(t, s.floor, bytes/s.link)
}
