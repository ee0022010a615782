package calibrate

import (
	"math"
	"strconv"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim"
)

// decode is decode attention to whole contexts and to selected blocks.
type decode struct{}

const (
	probeDense  = "dense_decode"
	probeSparse = "sparse_decode"
)

func (decode) probes() []Probe {
	return []Probe{
		{Name: probeDense, setup: (*gpuRun).setupDecode,
			Means: "paged dense decode attention of one layer, L2 flushed; " + gpuTime,
			Axes:  []string{"batch", "context_tokens"}, shaped: true, needed: true},
		{Name: probeSparse, setup: (*gpuRun).setupDecode,
			Means: "decode attention to selected blocks, L2 flushed; " + gpuTime,
			Axes:  []string{"batch", "budget_tokens"}, shaped: true, needed: true},
	}
}

// points alternate with the points of scoring and progressive attention, batch by batch.
func (decode) points(p *planner) {
	p.eachBatch(func(shape string, batch int64, at func(order int, p Point)) {
		for i, context := range pick(p, []int64{1024, 2048, 4096, 8192, 16384, 32768, 65536},
			[]int64{1024, 4096, 16384}) {
			if batch*context <= p.mostTokens(shape) {
				at(i, point(probeDense, shape, batch, context))
			}
		}
		for i, budget := range p.budgets() {
			if batch*budget <= p.mostTokens(shape) {
				at(orderBudgets+2*i, point(probeSparse, shape, batch, budget))
			}
		}
	})
	p.eachGroupedBatch(func(batch int64, at func(order int, p Point)) {
		for i, context := range groupedContexts {
			at(2*i, point(probeDense, manyQueries, batch, context))
		}
		for i, budget := range groupedBudgets {
			at(orderBudgets+2*i, point(probeSparse, manyQueries, batch, budget))
		}
	})
}

// Order of the kernels that decode one batch, and of the points after all batches of a shape.
const (
	orderBudgets   = 100
	orderSelection = 200

	orderShared = 1000
)

// eachBatch calls f for the batches on which all kernels of a decode are measured.
func (p *planner) eachBatch(f func(shape string, batch int64, at func(order int, p Point))) {
	for i, shape := range shapes {
		for j, batch := range pick(p, []int64{1, 2, 4, 8, 16, 32, 64}, []int64{1, 8, 32}) {
			f(shape, batch, func(order int, at Point) { p.addAt(stageDecode, rank{i, j, order}, at) })
		}
	}
}

// Sizes at which manyQueries is measured.
var (
	groupedContexts = []int64{4096, 32768}
	groupedBudgets  = []int64{1024, 2048}
)

// eachGroupedBatch is eachBatch for manyQueries.
func (p *planner) eachGroupedBatch(f func(batch int64, at func(order int, p Point))) {
	for j, batch := range []int64{1, 4, 16, 64} {
		f(batch, func(order int, at Point) { p.addAt(stageDecode, rank{len(shapes), j, order}, at) })
	}
}

// budgets returns the tokens that decodes select.
func (p *planner) budgets() []int64 {
	return pick(p, []int64{1024, 2048, 4096}, []int64{1024, 2048})
}

// mostTokens returns the maximum tokens of a batch's KV in the card's memory.
func (p *planner) mostTokens(shape string) int64 {
	m, err := shapeModel(shape)
	if err != nil {
		panic(err) // shapes are built in
	}
	return min(p.limits.DeviceBytes, mostDeviceBytes) * 3 / 4 / m.LayerKVBytesPerToken()
}

// fit fits both kernels; a price is never faster than HBM.
func (decode) fit(s *Samples, p *hw.Profile, from source) []model {
	return []model{
		fitDecode(s, p, from, "dense_decode", probeDense, "context_tokens", "paged dense decode kernel",
			&p.DenseDecode,
			func(p *hw.Profile, at observation) float64 {
				return hw.Seconds(p.Costs(at.model).DenseDecode,
					sim.Work{DecodeTokens: kvTokens(at, "context_tokens"), Decodes: int(at.At("batch"))})
			}),
		fitDecode(s, p, from, "sparse_decode", probeSparse, "budget_tokens", "block-sparse decode kernel",
			&p.SparseDecode,
			func(p *hw.Profile, at observation) float64 {
				return hw.Seconds(p.Costs(at.model).SparseDecode,
					sim.Work{DecodeTokens: kvTokens(at, "budget_tokens"), Decodes: int(at.At("batch"))})
			}),
	}
}

// blockTokens is the tokens of a KV block in every attention probe.
const blockTokens = 32

// ctasPerSM is the number of a list's splits that the decode kernel runs concurrently on each SM.
const ctasPerSM = 2

// Parameters of a decode or selection point: one list per request and KV head, the tokens of a
// list, and the query heads per list.
func lists(at observation) float64 { return float64(at.At("batch") * int64(at.model.KVHeads)) }

func group(at observation) float64 { return float64(at.model.QHeads / at.model.KVHeads) }

func listTokens(axis string) func(at observation) float64 {
	return func(at observation) float64 { return float64(at.At(axis)) }
}

// kvTokens sums the tokens over requests.
func kvTokens(at observation, axis string) int64 { return at.At("batch") * at.At(axis) }

func kvBytes(axis string) func(at observation) float64 {
	return func(at observation) float64 {
		return float64(kvTokens(at, axis) * at.model.LayerKVBytesPerToken())
	}
}

// fitDecode fits t = launch + group splits merge + bytes/rate. Lists are split until they fill the
// card, and merging them is what a small launch waits for.
func fitDecode(s *Samples, p *hw.Profile, from source, name, probe, axis, what string,
	stream *hw.Stream, price func(*hw.Profile, observation) float64) model {
	fit, held := s.of(probe).split(func(at observation) string { return at.Shape }, 3, nil)
	bytes, tokens, ctas := kvBytes(axis), listTokens(axis), ctasPerSM*s.sms()
	hbm := p.GPU.HBMBandwidth.SI()
	start := linear(fit, one, bytes)
	c := refine(fit, []float64{math.Max(start[0], 1e-6), 1e-7, 1 / math.Max(start[1], 1/hbm)},
		[]bound{callBound, blockBound, {rateBound.low, hbm}},
		func(c []float64, at observation) float64 {
			return c[0] + group(at)*hw.ListSplits(ctas, lists(at), tokens(at))*c[1] + bytes(at)/c[2]
		})
	*stream = hw.Stream{
		Launch: from.us(c[0], what), Rate: from.gbps(c[2], what),
	}
	if merge := perBlock(c[1], from,
		what+", merging the splits of a list, for each split and query head"); merge.Set() && ctas > 0 {
		stream.Merge = merge
	}
	return model{name: name, fit: fit, held: held, price: price,
		draw: picture{x: bytes, xLabel: "bytes", rate: bytes}}
}

// sms is the card's SMs, 0 where the samples have none.
func (s *Samples) sms() float64 {
	n, err := strconv.Atoi(s.Origin.SMs)
	if err != nil || n < 0 {
		return 0
	}
	return float64(n)
}
