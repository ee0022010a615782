package cost

import (
	"fmt"
	"math"
	"strings"

	"github.com/sparseserve/sparseserve/hw"
)

// Engines that move blocks between HBM and host memory.
const (
	LoadMemcpy = "memcpy" // one cudaMemcpyAsync per block
	LoadFlash  = "flash"  // FlashH2D: one gather kernel (SparseServe §3.2.1)

	SaveMemcpy = "memcpy" // one cudaMemcpyAsync per block
	SaveGPU    = "gpu"    // one scatter kernel, which uses SM time of compute
	SaveFlash  = "flash"  // FlashD2H: one memcpy into staging, CPU scatter (SparseServe §3.2.2)
)

// transfer prices one layer's loads or saves of n blocks of b bytes each, B = n b:
//
//	t = max(floor, launch + B / rate + n call, B / link)
//
// Each engine sets some of the terms; the others are 0. rate never exceeds the link's.
type transfer struct {
	engine        string
	launch, floor float64 // seconds
	call          float64 // seconds per block, of one memcpy per block
	link, rate    float64 // bytes/s
	rates         curve   // host pool bytes, bytes/s: rate, if it depends on the pool
	contention    float64 // share of compute lost during a transfer
	outside       bool    // scatter threads outside the measured range
}

// loadEngines are the load engines that a configuration can name. To add one, write a function that
// sets the cost of its loads, and add an entry.
var loadEngines = []struct {
	name  string
	costs func(*transfer, *hw.Loading)
}{
	{LoadMemcpy, func(t *transfer, f *hw.Loading) { t.call = f.MemcpyCall.SI() }},
	{LoadFlash, (*transfer).flashH2D},
	{LoadSwap, (*transfer).swapIn},
}

// saveEngines are the save engines, with the given scatter threads; 0: the profile's own.
var saveEngines = []struct {
	name  string
	costs func(t *transfer, p *hw.Profile, threads int) error
}{
	{SaveMemcpy, func(t *transfer, p *hw.Profile, _ int) error {
		t.call = p.Save.MemcpyCall.SI()
		return nil
	}},
	{SaveGPU, func(t *transfer, p *hw.Profile, _ int) error { t.gpuScatter(&p.Save); return nil }},
	{SaveFlash, (*transfer).flashD2H},
}

// LoadEngines returns the names of the load engines.
func LoadEngines() (names []string) {
	for _, e := range loadEngines {
		names = append(names, e.name)
	}
	return names
}

// SaveEngines returns the names of the save engines.
func SaveEngines() (names []string) {
	for _, e := range saveEngines {
		names = append(names, e.name)
	}
	return names
}

// newLoader prices an engine's loads.
func newLoader(p *hw.Profile, engine string) (transfer, error) {
	link := math.Min(p.Link.H2D.SI(), p.Link.Nominal.SI())
	t := transfer{engine: engine, link: link, rate: link}
	for _, e := range loadEngines {
		if e.name == engine {
			e.costs(&t, &p.Load)
			return t, nil
		}
	}
	return t, fmt.Errorf("load engine: want %s, got %q", strings.Join(LoadEngines(), " or "), engine)
}

// newSaver prices an engine's saves with the given scatter threads; 0: the profile's own.
func newSaver(p *hw.Profile, engine string, threads int) (t transfer, err error) {
	link := math.Min(p.Link.D2H.SI(), p.Link.Nominal.SI())
	t = transfer{engine: engine, link: link, rate: link}
	for _, e := range saveEngines {
		if e.name == engine {
			return t, e.costs(&t, p, threads)
		}
	}
	return t, fmt.Errorf("save engine: want one of %s, got %q", strings.Join(SaveEngines(), ", "),
		engine)
}

// over sets the size of the host pool and reports whether it is larger than measured.
func (t *transfer) over(poolBytes int64) (outside bool) {
	if len(t.rates.x) > 0 {
		t.rate, _ = t.rates.logLinear(math.Max(float64(poolBytes), 1))
		outside = float64(poolBytes) > t.rates.last()
	}
	return outside
}

// seconds returns the time of n blocks on the link.
func (t *transfer) seconds(n, blockBytes int64) float64 {
	if n <= 0 {
		return 0
	}
	bytes := float64(n) * float64(blockBytes)
	return max(t.launch+bytes/t.rate+float64(n)*t.call, t.floor, bytes/t.link)
}

// flashH2D is one gather kernel:
//
//	t = max(floor, launch + B / rate(pool))
//
// rate falls with the size of the host pool (TLB reach), linearly in log size. launch and floor
// include submission and wait.
func (t *transfer) flashH2D(f *hw.Loading) {
	t.launch, t.floor = f.FlashLaunch.SI(), f.FlashFloor.Optional()
	for _, r := range f.Flash {
		t.rates.add(r.PoolGiB*(1<<30), r.SI())
	}
}

// gpuScatter is one scatter kernel. While it runs, compute loses the share contention of its speed:
//
//	t = max(floor, launch + B / rate)
func (t *transfer) gpuScatter(f *hw.Saving) {
	t.launch, t.floor = f.GPULaunch.SI(), f.GPUFloor.Optional()
	t.rate, t.contention = f.GPURate.SI(), f.Contention.SI()
}

// ScatterThreads is the number of CPU threads that scatter saved blocks unless a system sets it:
// on the calibrated hosts more gained at most 2 %.
const ScatterThreads = 8

// flashD2H is one memcpy into a staging buffer and the CPU's scatter of what has arrived:
//
//	t = call + B / min(link, scatter(threads))
func (t *transfer) flashD2H(p *hw.Profile, threads int) error {
	if threads == 0 {
		threads = int(math.Min(ScatterThreads, p.CPU.Cores.SI()))
	}
	if threads < 0 {
		return fmt.Errorf("scatter threads: want 1 or more, or 0 for the profile's own, got %d", threads)
	}
	var scatter curve
	for _, r := range p.Save.Scatter {
		scatter.add(float64(r.Threads), r.SI())
	}
	t.launch = p.Save.FlashCall.SI()
	t.rate, t.outside = scatter.power(float64(threads))
	if below := float64(threads) / scatter.x[0]; below < 1 {
		t.rate *= below // fewer threads scatter proportionally slower
	}
	t.rate = math.Min(t.link, t.rate)
	return nil
}
