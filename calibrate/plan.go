package calibrate

import (
	"slices"

	"github.com/sparseserve/sparseserve/cuda/live"
)

// Limits is how far a machine lets the plan go.
type Limits struct {
	PoolGiB     int64 // largest pinned pool
	Threads     int   // CPUs
	DeviceBytes int64 // of the card's memory, for all buffers of a point
}

// Plan names the amount of measuring.
type Plan string

// The plans.
const (
	Full  Plan = "full"  // under five minutes
	Quick Plan = "quick" // under one
)

// Needs of a plan that no smaller plan does without.
const (
	leastPoolGiB     = 1
	leastDeviceBytes = 8 << 30
	// What the points may use at most; see rig.go for what they allocate.
	mostDeviceBytes = 12 << 30
)

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

// scale is one plan's sizes.
type scale struct {
	link        []int64 // bytes
	duplex      []int64
	blockBytes  []int64
	blocks      []int64
	moved       int64   // bytes of one transfer, at most
	pools       []int64 // MiB
	poolBlocks  []int64 // block sizes on the other pools
	threads     []int64
	tokens      []int64 // linears
	pointwise   []int64 // tokens
	micro       []int64 // PSA's microbatches, blocks
	queries     []int64
	prefixes    []int64
	attended    int64 // query and prefix together, at most
	batches     []int64
	contexts    []int64
	budgets     []int64
	waves       []int64 // batches whose CTAs come in no full waves
	few         []int64 // requests of a batch of lists that end in different rounds
	longest     []int64 // of these lists, tokens
	selectFrom  []int64 // contexts
	layerPrefix []int64
	after       []int64 // ms of linears
	rest        []int64 // ms without
	chunkAfter  []int64 // tokens before a chunk under the lowered clock
	filled      []int64 // tokens of blocks that become full
	shapes      []string
	matrices    []string // shapes of linears
	clocked     []string // shapes under the card's clock
	layers      int64    // of the live loop's model
	requests    []int64
	loading     []int64 // requests of servers whose layers load
}

func scaleOf(plan Plan) scale {
	s := scale{
		link:        []int64{4 * mib, 8 * mib, 16 * mib, 32 * mib, 64 * mib, 128 * mib, 256 * mib, 512 * mib},
		duplex:      []int64{64 * mib, 128 * mib, 256 * mib},
		blockBytes:  []int64{4 * kib, 8 * kib, 16 * kib, 32 * kib, 64 * kib},
		blocks:      []int64{16, 64, 256, 1024, 4096},
		moved:       256 * mib,
		pools:       []int64{512, 4 * kib, 16 * kib, 64 * kib},
		poolBlocks:  []int64{4 * kib, 16 * kib, 64 * kib},
		threads:     []int64{1, 2, 4, 8, 12, 16, 24, 32, 48, 64},
		tokens:      append(onGrid(2048, 1, 4, 8, 16, 32, 48), 2560, 3072, 4096, 6144, 8192, 16384),
		pointwise:   []int64{1, 8, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384},
		micro:       []int64{8, 32},
		queries:     []int64{64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768},
		prefixes:    []int64{0, 2048, 8192, 32768},
		attended:    49152,
		batches:     []int64{1, 2, 4, 8, 16, 32, 64},
		contexts:    []int64{1024, 2048, 4096, 8192, 16384, 32768, 65536},
		budgets:     []int64{1024, 2048, 4096},
		waves:       []int64{3, 5, 6, 7, 9, 10, 12, 14, 20, 24},
		few:         []int64{1, 2, 3, 4, 6, 8, 12},
		longest:     []int64{2048, 4096, 6144},
		selectFrom:  []int64{4096, 8192, 16384, 32768, 65536},
		layerPrefix: []int64{0, 4096, 6144, 10240},
		after:       []int64{1, 20, 40, 60, 80, 120, 200},
		rest:        []int64{10, 20, 80, 160},
		chunkAfter:  []int64{0, 2048, 6144},
		filled:      []int64{blockTokens, 1024, 2048, 4096, 8192},
		shapes:      shapes,
		matrices:    linearShapes(),
		clocked:     shapes,
		layers:      32,
		requests:    []int64{1, 4, 16},
		loading:     []int64{4, 8},
	}
	if plan == Full {
		return s
	}
	s.matrices, s.clocked = shapes, shapes[:1]
	s.link = []int64{4 * mib, 16 * mib, 32 * mib, 64 * mib}
	s.duplex = []int64{64 * mib}
	s.blockBytes = []int64{8 * kib, 16 * kib, 64 * kib}
	s.blocks = []int64{16, 256, 2048}
	s.moved = 64 * mib
	s.pools = []int64{512}
	s.poolBlocks = []int64{16 * kib}
	s.threads = []int64{1, 4, 8, 16}
	s.tokens = []int64{1, 16, 64, 128, 256, 512, 1024, 2048, 4096, 8192}
	s.pointwise = []int64{1, 256, 2048, 8192}
	s.micro = []int64{8}
	s.queries = []int64{128, 512, 2048, 8192}
	s.prefixes = []int64{0, 2048, 8192}
	s.attended = 16384
	s.batches = []int64{1, 8, 32}
	s.contexts = []int64{1024, 4096, 16384}
	s.budgets = []int64{1024, 2048}
	s.waves = nil
	s.few, s.longest = []int64{1, 6}, []int64{4096}
	s.selectFrom = []int64{8192, 32768}
	s.layerPrefix = []int64{4096}
	s.after, s.rest, s.chunkAfter = []int64{1, 100}, []int64{20}, []int64{2048}
	s.filled = []int64{blockTokens, 4096}
	s.layers, s.requests, s.loading = 2, []int64{1, 16}, []int64{4}
	return s
}

// onGrid adds the live loop's own numbers of tokens above some small ones, each
// up to a most: what linears take is a staircase, whose treads lie between these.
func onGrid(most int64, small ...int64) []int64 {
	for n := int64(live.LinearGrid); n <= most; n += live.LinearGrid {
		small = append(small, n)
	}
	return small
}

// points lists what a plan measures on a machine, in order: the host pool only
// grows on the way.
func points(plan Plan, limits Limits) []Point {
	s := scaleOf(plan)
	var all []Point
	all = append(all, linearPoints(s)...) // first: they wake the card up
	all = append(all, layersPoints(s)...) // then: they tell whether the host is disturbed
	all = append(all, clockPoints(s)...)
	all = append(all, layerPoints(s)...)
	all = append(all, launchPoints()...)
	all = append(all, linkPoints(s)...)
	all = append(all, attentionPoints(s, limits)...)
	all = append(all, savePoints(s, limits)...)
	all = append(all, overlapPoints(s, limits)...)
	all = append(all, loadPoints(s, limits)...)
	all = append(all, livePoints(s)...)
	return all
}

// basePool is the pool, in MiB, at which block sizes and counts are varied.
const basePool = 1024

// besidePool is the pool, of those allowed, that saves beside prefill go to as
// well as to the base one: as large as a serving loop's at moderate load.
func (s scale) besidePool(limits Limits) int64 {
	pools := slices.DeleteFunc(s.perPool(limits), func(m int64) bool { return m > 16*kib })
	return slices.Max(pools)
}

// perPool returns pool sizes that the machine allows, base included, rising.
func (s scale) perPool(limits Limits) []int64 {
	pools := append([]int64{basePool}, s.pools...)
	slices.Sort(pools)
	return slices.DeleteFunc(pools, func(m int64) bool { return m > limits.PoolGiB*1024 })
}
