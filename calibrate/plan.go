package calibrate

import (
	"slices"

	"github.com/sparseserve/sparseserve/cuda/live"
)

// Limits bounds the plan on a machine.
type Limits struct {
	PoolGiB     int64 // largest pinned pool
	Threads     int   // CPUs
	DeviceBytes int64 // of the card's memory, for all buffers of a point
}

// Plan names the extent of a calibration.
type Plan string

// The plans.
const (
	Full  Plan = "full"  // under five minutes
	Quick Plan = "quick" // under one
)

// Minimum needs of any plan.
const (
	leastPoolGiB     = 1
	leastDeviceBytes = 8 << 30
	// Maximum memory of the points; set-ups allocate it.
	mostDeviceBytes = 12 << 30
)

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

// grid is a row of a plan: points of some probes and shapes with every combination of sizes.
type grid struct {
	plan   Plan // "": both
	probes names
	shapes names
	sizes  axes
}

type names = []string

type axes = []list

// list has values of one axis, or of several that vary together.
type list [][]int64

func values(all ...int64) (l list) {
	for _, v := range all {
		l = append(l, []int64{v})
	}
	return l
}

func kibs(all ...int64) list { return scaled(kib, all) }

func mibs(all ...int64) list { return scaled(mib, all) }

func scaled(unit int64, all []int64) (l list) {
	for _, v := range all {
		l = append(l, []int64{v * unit})
	}
	return l
}

// onGrid appends the live loop's token counts, up to most, to some small ones. The times of linears
// form a staircase with steps at these counts.
func onGrid(most int64, small ...int64) []int64 {
	for n := int64(live.LinearGrid); n <= most; n += live.LinearGrid {
		small = append(small, n)
	}
	return small
}

// allCPUs stands for the number of CPUs.
const allCPUs = 0

// grids lists the rows of all plans. Points that a machine does not allow are left out (allows).
func grids() []grid {
	one, both, other := shapes[:1], shapes, shapes[1:]
	none, many := names{""}, names{manyQueries}
	large := append(onGrid(2048, 1, 4, 8, 16, 32, 48), 2560, 3072, 4096, 6144, 8192, 16384)
	coarse := slices.DeleteFunc(slices.Clone(large), func(n int64) bool {
		return n > 896 && n < 2048 && n%(2*live.LinearGrid) != 0
	})
	afterDecodes := slices.DeleteFunc(onGrid(clockTokens), func(n int64) bool {
		return n > inPlaceTokens && n%(2*live.LinearGrid) != 0
	})
	blocks, few := kibs(4, 8, 16, 32, 64), kibs(8, 16, 64)
	threads := values(1, 2, 4, 8, 12, 16, 24, 32, 48, 64, allCPUs)
	batches, fewBatches, manyBatches := values(1, 2, 4, 8, 16, 32, 64), values(1, 8, 32),
		values(1, 4, 16, 64)
	// of sparse prefill: chunks (query, prefix), and the sizes of the paper's Table 6 and of its
	// published files: sink and window, or blocks and columns; vertical and slash lines, or blocks
	chunks := list{{512, 32768}, {2048, 0}, {2048, 32768}, {8192, 0}, {8192, 32768}, {32768, 0},
		{65536, 0}, {131072, 0}}
	fewChunks := list{{2048, 8192}, {8192, 0}, {32768, 0}}
	attended := list{{128, 1024, 0, 0}, {512, 2048, 0, 0}, {1024, 4096, 0, 0}, {0, 0, 32, 0},
		{0, 0, 100, 0}, {0, 0, 200, 0}, {0, 0, 100, 500}, {0, 0, 30, 1000}}
	indexed := list{{30, 800, 0}, {500, 700, 0}, {3500, 100, 0}, {1000, 6096, 0}, {0, 0, 50},
		{0, 0, 100}}
	// contexts of which seven eighths are shared, so that HBM is not the bottleneck
	shared := list{{8192, 7168}, {16384, 14336}, {32768, 28672}}
	moves := list{{0, 0}, {overlappedBlocks, 0}, {0, overlappedBlocks}}
	return []grid{
		{Full, names{probeH2D, probeD2H}, none, axes{mibs(4, 8, 16, 32, 64, 128, 256, 512)}},
		{Quick, names{probeH2D, probeD2H}, none, axes{mibs(4, 16, 32, 64)}},
		{Full, names{probeDuplex}, none, axes{mibs(64, 128, 256), values(0)}},
		{Full, names{probeDuplex}, none, axes{values(0), mibs(64, 128, 256)}},
		{Quick, names{probeDuplex}, none, axes{{{64 * mib, 0}, {0, 64 * mib}}}},

		// sizes and counts of blocks at the base pool, large transfers at others
		{Full, names{probeLoadMemcpy, probeSaveMemcpy, probeSaveGPU, probeLoadFlash}, none,
			axes{blocks, values(16, 64, 256, 1024, 4096), values(basePool)}},
		{Quick, names{probeLoadMemcpy, probeSaveMemcpy, probeSaveGPU, probeLoadFlash}, none,
			axes{few, values(16, 256, 2048), values(basePool)}},
		{Full, names{probeLoadFlash}, none,
			axes{kibs(4, 16, 64), values(1024, 4096), values(512, 4*kib, 16*kib, 64*kib)}},
		{Quick, names{probeLoadFlash}, none, axes{kibs(16), values(2048), values(512)}},
		// fewer blocks cost only the call; a layer of a chunk has thousands
		{Full, names{probeSaveFlash}, none,
			axes{blocks, values(256, 1024, 4096), values(basePool), threads}},
		{Quick, names{probeSaveFlash}, none,
			axes{few, values(256, 2048), values(basePool), values(1, 4, 8, 16, allCPUs)}},

		// the buffer and the requests without misses, then the misses
		{Full, names{probeSwap}, none,
			axes{values(latentFP8), values(1, 16, 64, 150), values(2560, 4096, 8192), values(0)}},
		{Quick, names{probeSwap}, none,
			axes{values(latentFP8), values(1, 64), values(4096, 8192), values(0)}},
		{Full, names{probeSwap}, none, axes{values(latentFP8, latent16), values(1, 8, 32),
			values(4096), values(16, 64, 256, 1024)}},
		{Quick, names{probeSwap}, none, axes{values(latentFP8, latent16), values(1, 32),
			values(4096), values(64, 512)}},

		{Full, names{probeOverlap}, both, axes{values(512, 2048), values(6144), moves}},
		{Quick, names{probeOverlap}, both, axes{values(512), values(6144), moves}},

		{Full, names{probeLinears}, both, axes{values(large...)}},
		{Full, names{probeLinears}, otherLinears, axes{values(coarse...)}},
		{Quick, names{probeLinears}, both,
			axes{values(1, 16, 64, 128, 256, 512, 1024, 2048, 4096, 8192)}},
		{Full, names{probePointwise}, both,
			axes{values(1, 8, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)}},
		{Quick, names{probePointwise}, both, axes{values(1, 256, 2048, 8192)}},
		{Full, names{probeInPlace}, both, axes{values(onGrid(inPlaceTokens, 1, 8, 32)...)}},
		{Quick, names{probeInPlace}, both, axes{values(1, 128, 512, inPlaceTokens)}},

		{Full, names{probePrefill}, both,
			axes{values(64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768),
				values(0, 2048, 8192, 32768)}},
		{Full, names{probePrefill}, other,
			axes{values(192, 384, 640, 1536, 3072, 6144, 12288, 24576), values(0, 8192)}},
		{Quick, names{probePrefill}, both, axes{values(128, 512, 2048, 8192), values(0, 2048, 8192)}},
		{Quick, names{probePrefill}, other, axes{values(640, 3072), values(0, 8192)}},
		{Full, names{probePrefillBlocks}, both,
			axes{{{2048, 32768}, {16384, 16384}}, values(16, 32, 64)}},
		{Full, names{probePrefillBlocks}, other, axes{{{128, 8192}, {512, 8192}, {1024, 8192},
			{2048, 8192}, {8192, 8192}, {16384, 114688}}, values(16, 32, 64)}},
		{Quick, names{probePrefillBlocks}, other, axes{{{2048, 8192}}, values(16, 64)}},
		{Full, names{probeSparseAttention}, other, axes{chunks, attended}},
		{Full, names{probeSparseIndex}, other, axes{chunks, indexed}},
		{Full, names{probeSparseAttention}, one, axes{{{8192, 0}, {8192, 32768}}, attended}},
		{Full, names{probeSparseIndex}, one, axes{{{8192, 0}, {8192, 32768}}, indexed}},
		{Quick, names{probeSparseAttention}, other, axes{fewChunks, attended}},
		{Quick, names{probeSparseIndex}, other, axes{fewChunks, indexed}},
		{Quick, names{probeSparseAttention}, one, axes{{{8192, 0}}, attended}},
		{Quick, names{probeSparseIndex}, one, axes{{{8192, 0}}, indexed}},

		{Full, names{probeDense}, both,
			axes{batches, values(1024, 2048, 4096, 8192, 16384, 32768, 65536)}},
		{Quick, names{probeDense}, both, axes{fewBatches, values(1024, 4096, 16384)}},
		{"", names{probeDense}, many, axes{manyBatches, values(4096, 32768)}},
		{Full, names{probeSparse}, both, axes{batches, values(1024, 2048, 4096)}},
		{Quick, names{probeSparse}, both, axes{fewBatches, values(1024, 2048)}},
		{"", names{probeSparse}, many, axes{manyBatches, values(1024, 2048)}},
		{Full, names{probeSelect}, both,
			axes{batches, values(4096, 8192, 16384, 32768, 65536), values(selectBudget)}},
		{Quick, names{probeSelect}, both, axes{fewBatches, values(8192, 32768), values(selectBudget)}},
		{"", names{probeSelect}, many, axes{manyBatches, values(4096, 32768), values(selectBudget)}},
		{Full, names{probeShared}, both, axes{values(4, 8, 16), shared}},
		{Quick, names{probeShared}, both, axes{values(4, 8, 16), shared[:1]}},

		{"", names{probeSync}, none, nil},
		// linears while the card lowers its clock, chunks at the lowered clock, linears after decodes
		{Full, names{probeClock}, both, axes{values(clockSizes[0]), values(1)}},
		{Full, names{probeClock}, both,
			axes{values(clockTokens), values(1, 20, 40, 60, 80, 120, 200)}},
		{Quick, names{probeClock}, one, axes{values(clockSizes[0]), values(1)}},
		{Quick, names{probeClock}, one, axes{values(clockTokens), values(1, 100)}},
		{Full, names{probeChunk}, both, axes{values(clockSizes...), values(0, 2048, 6144)}},
		{Full, names{probeChunk}, both, axes{values(clockTokens), values(32768, 65536)}},
		{Quick, names{probeChunk}, one, axes{values(clockSizes...), values(2048)}},
		{Full, names{probeAfterDecodes}, both, axes{values(afterDecodes...)}},
		{Quick, names{probeAfterDecodes}, one, axes{values(128, 512, 1024)}},
	}
}

// points lists the points of a plan on a machine, in order.
func points(plan Plan, limits Limits) (all []Point) {
	for _, g := range grids() {
		if g.plan != "" && g.plan != plan {
			continue
		}
		sizes := list{nil} // of all combinations
		for _, of := range g.sizes {
			var more list
			for _, before := range sizes {
				for _, v := range of {
					more = append(more, slices.Concat(before, v))
				}
			}
			sizes = more
		}
		for _, probe := range g.probes {
			for _, shape := range g.shapes {
				for _, s := range sizes {
					if p := point(probe, shape, s...); limits.allow(plan, &p) {
						all = append(all, p)
					}
				}
			}
		}
	}
	return all
}

// allow reports whether the machine allows a point. It replaces allCPUs.
func (l *Limits) allow(plan Plan, p *Point) bool {
	moved, attended := int64(256*mib), int64(49152) // at most, in one transfer and chunk
	if plan == Quick {
		moved, attended = 64*mib, 16384
	}
	switch p.Probe {
	case probeSaveFlash:
		threads := &p.Axes[len(p.Axes)-1].Value
		if *threads >= int64(l.Threads) {
			return false
		} else if *threads == allCPUs {
			*threads = int64(l.Threads)
		}
		return p.At("blocks")*p.At("block_bytes") <= mostScattered
	case probeLoadMemcpy, probeLoadFlash, probeSaveMemcpy, probeSaveGPU:
		pool := p.At("pool_mib")
		return pool <= l.PoolGiB*1024 && p.At("blocks")*p.At("block_bytes") <= min(moved, pool*mib)
	case probePrefill:
		return p.At("query_tokens")+p.At("prefix_tokens") <= attended
	case probeSparseIndex:
		return p.At("vertical_lines")+p.At("slash_lines") <= p.At("query_tokens")+p.At("prefix_tokens")
	case probeDense, probeSparse, probeShared:
		m, err := shapeModel(p.Shape)
		must(err) // shapes are built in
		most := min(l.DeviceBytes, mostDeviceBytes) * 3 / 4 / m.LayerKVBytesPerToken()
		return p.At("batch")*p.Axes[1].Value <= most
	}
	return true
}
