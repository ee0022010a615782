package hw

import (
	"fmt"
	"math"
	"strings"
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
	for _, e := range saveEngines {
		if e.name == engine {
			return s, e.costs(&s, p, threads)
		}
	}
	return saver{}, fmt.Errorf("save engine: want one of %s, got %q", strings.Join(SaveEngines(), ", "), engine)
}

// saveEngines are the save engines that a configuration can name. Another is a function that
// sets what its saves cost, and an entry here.
var saveEngines = []struct {
	name  string
	costs func(s *saver, p *Profile, threads int) error
}{
	{SaveMemcpy, memcpySaves},
	{SaveGPU, gpuSaves},
	{SaveFlash, flashSaves},
}

// SaveEngines names the save engines.
func SaveEngines() []string {
	var names []string
	for _, e := range saveEngines {
		names = append(names, e.name)
	}
	return names
}

func memcpySaves(s *saver, p *Profile, _ int) error {
	f := &p.Save
	s.copies = newCopies(f.MemcpyBase, f.MemcpyCall, nil)
	s.beside = s.copies
	if len(f.MemcpyBesidePools) > 0 {
		s.beside = newCopies(f.MemcpyBase, f.MemcpyCall, f.MemcpyBesidePools)
	}
	return nil
}

func gpuSaves(s *saver, p *Profile, _ int) error {
	f := &p.Save
	s.call, s.block, s.floor = f.GPULaunch.SI(), f.GPUBlock.optional(), f.GPUFloor.optional()
	s.rate = f.GPURate.SI()
	s.contention = f.Contention.SI()
	return nil
}

func flashSaves(s *saver, p *Profile, threads int) error {
	f := &p.Save
	s.call = f.FlashCall.SI()
	if threads == 0 {
		threads = int(math.Min(f.Threads.SI(), p.CPU.Cores.SI()))
	}
	if threads < 0 {
		return fmt.Errorf("scatter threads: want 1 or more, or 0 for the profile's own, got %d", threads)
	}
	var scatter curve
	for _, r := range f.Scatter {
		scatter.add(float64(r.Threads), r.SI())
	}
	s.rate, s.outside = scatter.power(float64(threads))
	if below := float64(threads) / scatter.x[0]; below < 1 {
		s.rate *= below // a thread fewer copies a thread's share less
	}
	s.chunk, s.fill = f.FlashChunk.optional(), math.Max(s.link, s.rate)
	s.rate = math.Min(s.link, s.rate)
	return nil
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
	t := s.call + float64(n)*s.block + bytes/s.rate + c.seconds(n)
	if s.chunk > 0 {
		t += math.Min(bytes, s.chunk) / s.fill
	}
	return max(t, s.floor, bytes/s.link)
}
