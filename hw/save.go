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
//	memcpy  as loader's; where prefill is computed meanwhile a call has rows of its own
//	gpu     t = max(floor, launch + n block + B / rate), B = n b; compute loses the
//	        share contention of its speed while the kernel runs
//	flash   t = call + threads wake + join + n block + near / min(link, scatter(threads)) +
//	        (B - near) / min(link, long(threads)) + min(B, chunk) / max(link, scatter(threads)):
//	        the CPU scatters one chunk while the copy engine brings the next
//
// join is paid by more than one thread; near is what of B is within the first
// flash_near bytes. wake, join, block and chunk are 0 in profiles
// that do not give them, and all of B is near.
// Never below n b / link, nor below the link's nominal speed.
type saver struct {
	engine      string
	call, block float64 // seconds
	floor       float64
	copies      copies
	beside      copies  // the same where prefill is computed meanwhile
	link, rate  float64 // bytes/s
	near        float64 // bytes at rate; 0: all
	far         float64 // bytes/s of the others
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
		f := &p.Save
		s.copies = newCopies(f.MemcpyBase, f.MemcpyCall, f.MemcpyStart, f.MemcpyWhole, f.MemcpyPools)
		s.copies.long, s.copies.half = f.MemcpyLong.optional(), f.MemcpyHalf.optional()
		s.beside = s.copies
		if len(f.MemcpyBesidePools) > 0 {
			s.beside = newCopies(f.MemcpyBase, f.MemcpyCall, f.MemcpyStart, f.MemcpyWhole, f.MemcpyBesidePools)
		}
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
		if threads > 1 {
			s.call += p.Save.FlashJoin.optional()
		}
		var near, far curve
		for _, r := range p.Save.Scatter {
			near.add(float64(r.Threads), r.SI())
			if !r.Long.Set() {
				r.Long = r.Figure
			}
			far.add(float64(r.Threads), r.Long.SI())
		}
		var scatter float64
		scatter, s.outside = near.power(float64(threads))
		long, _ := far.power(float64(threads))
		if below := float64(threads) / near.x[0]; below < 1 {
			scatter, long = scatter*below, long*below // a thread fewer copies a thread's share less
		}
		s.rate, s.faster = math.Min(s.link, scatter), math.Max(s.link, scatter)
		s.near, s.far = p.Save.FlashNear.optional(), math.Min(s.link, long)
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
// computed, whatever that computes: what a call takes alone says little of it. Alone,
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
	t := s.call + float64(n)*s.block + bytes/s.rate + c.seconds(n, blockBytes)
	if s.near > 0 && bytes > s.near {
		t += (bytes - s.near) * (1/s.far - 1/s.rate)
	}
	if s.chunk > 0 {
		t += math.Min(bytes, s.chunk) / s.faster
	}
	return max(t, s.floor, bytes/s.link)
}
