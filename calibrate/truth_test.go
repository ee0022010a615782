package calibrate

import (
	"math"

	"github.com/sparseserve/sparseserve/hw"
)

// machine is a made-up GPU box: the figures of its costs, in s, bytes/s, FLOP/s, bytes or as
// shares. Its laws (laws_*_test.go) are closed forms of their own, which know nothing of the
// predictions of package cost: a fit that recovers the figures finds both in agreement.
type machine struct {
	card                          string // a built-in one
	peak, hbm, nominal            float64
	h2d, d2h, duplexCopy, duplexK float64

	load, save      float64 // s of a copy
	gather, scatter kernelLaw
	gatherFalls     float64 // bytes/s for each doubling of the pool
	loadDelay       float64 // s that a layer loses to a load
	swap            swapLaw
	contention      float64
	flashCall       float64
	thread          float64 // bytes/s that one thread scatters; n threads n^0.7 as much

	gemmLaunch, gemmRead, gemmCompute float64
	pointwiseLaunch, pointwiseRate    float64
	prefillLaunch, prefillToken       float64 // s, and for each query token
	prefillRate, prefillHalf          float64 // of long queries; tokens of half that rate
	prefillCopy                       float64 // s, of rows of a block
	sparsePrefill                     sparseLaw
	dense, sparse                     decodeLaw
	l2                                float64 // bytes/s of dense decode
	scoreLaunch, scoreRate            float64
	clock                             clockLaw

	sync float64
}

type kernelLaw struct{ floor, launch, rate float64 }

// swapLaw prices the kernel of hot buffers; scan is the time of 1,024 slots.
type swapLaw struct{ launch, scan, rate, request float64 }

type decodeLaw struct{ launch, rate, merge float64 }

// sparseLaw prices MInference's kernels: the shares of dense attention's rate of blocks and of
// columns; bytes/s of the indices.
type sparseLaw struct {
	launch, blocks, columns float64
	lineLaunch, lineRate    float64
	blockLaunch, blockRate  float64
}

// clockLaw describes a card that holds its power limit: the clock of linears without pause, and the
// time constant in s.
type clockLaw struct {
	ratio, settling float64
	gain            [2][2]float64 // by shapes, clockSizes
}

// truth returns a machine with the peaks of a built-in card.
func truth(name string) *machine {
	c, err := hw.LoadCard(name)
	must(err)
	link, hbm, peak := c.Link.D2H.SI(), c.GPU.HBMBandwidth.SI(), c.GPU.PeakFP16.SI()
	return &machine{
		card: name, peak: peak, hbm: hbm, nominal: c.Link.Nominal.SI(),
		h2d: link, d2h: link, duplexCopy: 1.7 * link, duplexK: 1.4 * link,
		load: 2.1e-6, save: 2.4e-6,
		gather: kernelLaw{18e-6, 11e-6, 0.9 * link}, gatherFalls: 0.02 * link,
		loadDelay: 70e-6,
		swap:      swapLaw{5e-6, 1.5e-6, 0.8 * link, 0.2 * link},
		scatter:   kernelLaw{16e-6, 10e-6, 0.85 * link}, contention: 0.4,
		flashCall: 40e-6, thread: 0.1 * link,
		gemmLaunch: 12e-6, gemmRead: 0.85 * hbm, gemmCompute: 0.7 * peak,
		pointwiseLaunch: 20e-6, pointwiseRate: 0.8 * hbm,
		prefillLaunch: 10e-6, prefillToken: 1e-9, prefillRate: 0.65 * peak, prefillHalf: 300,
		prefillCopy:   90e-9,
		sparsePrefill: sparseLaw{6e-6, 0.9, 0.3, 60e-6, 0.3 * hbm, 30e-6, 0.7 * hbm},
		dense:         decodeLaw{9e-6, 0.88 * hbm, 100e-9},
		l2:            2.5 * hbm,
		sparse:        decodeLaw{8e-6, 0.8 * hbm, 120e-9},
		scoreLaunch:   10e-6, scoreRate: 0.6 * hbm,
		clock: clockLaw{0.85, 60e-3, [2][2]float64{{0.13, 0.16}, {0.15, 0.18}}},
		sync:  10.3e-6,
	}
}

// doublings returns how many times the base pool doubles to reach poolMiB.
func doublings(poolMiB int64) float64 { return math.Log2(float64(poolMiB) / basePool) }

// fakeSMs is as in fakeOrigin; the kernels have two CTAs on each.
const fakeSMs, fakeCTAs = 108, 216

var fakeOrigin = Origin{
	Card: "NVIDIA A100-SXM4-40GB", Driver: "580.1", CUDA: "13.0", Library: "1",
	Host: "16 CPUs, 125 GiB", Memory: "42949672960", SMs: "108",
}

// fakeCards are what drivers call the cards of the built-in profiles.
var fakeCards = map[string]string{
	"a100-40gb": "NVIDIA A100-SXM4-40GB", "a100-80gb": "NVIDIA A100-SXM4-80GB",
	"h100-80gb": "NVIDIA H100 80GB HBM3", "h200": "NVIDIA H200",
}

var fakeLimits = Limits{PoolGiB: 32, Threads: 16, DeviceBytes: 32 << 30}
