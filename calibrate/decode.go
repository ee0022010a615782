package calibrate

import (
	"strconv"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/cost"
	"github.com/sparseserve/sparseserve/sim"
)

// decode is the memory-bound kernels of decodes: attention to whole contexts and to selected
// blocks, and the kernel that scores block metadata and selects the top-k.
type decode struct{}

// streamKernel is a memory-bound kernel: t = launch + group splits merge + bytes/rate.
type streamKernel struct {
	probe, axis, what string  // axis: of the tokens of a list
	full, quick       []int64 // tokens of a list
	grouped           []int64 // for manyQueries
	stream            func(*hw.Profile) *hw.Stream
	cost              func(cost.Costs) cost.Cost
	bytes             func(observation) float64
}

var streamKernels = []streamKernel{
	{probe: probeDense, axis: "context_tokens", what: "paged dense decode kernel",
		full:    []int64{1024, 2048, 4096, 8192, 16384, 32768, 65536},
		quick:   []int64{1024, 4096, 16384},
		grouped: groupedContexts, bytes: kvBytes("context_tokens"),
		stream: func(p *hw.Profile) *hw.Stream { return &p.DenseDecode },
		cost:   func(c cost.Costs) cost.Cost { return c.DenseDecode }},
	{probe: probeSparse, axis: "budget_tokens", what: "block-sparse decode kernel",
		full: []int64{1024, 2048, 4096}, quick: []int64{1024, 2048}, grouped: []int64{1024, 2048},
		bytes:  kvBytes("budget_tokens"),
		stream: func(p *hw.Profile) *hw.Stream { return &p.SparseDecode },
		cost:   func(c cost.Costs) cost.Cost { return c.SparseDecode }},
	{probe: probeSelect, axis: "context_tokens", what: "scores and top-k in one kernel",
		full:    []int64{4096, 8192, 16384, 32768, 65536},
		quick:   []int64{8192, 32768},
		grouped: groupedContexts, bytes: digestBytes,
		stream: func(p *hw.Profile) *hw.Stream { return &p.Scoring },
		cost:   func(c cost.Costs) cost.Cost { return c.Scoring }},
}

// selectBudget is the number of tokens selected from every context.
const selectBudget = 2048

// merges reports whether the kernel splits long lists and merges their results.
func (k *streamKernel) merges() bool { return k.probe != probeSelect }

func (decode) points(p *planner) {
	for _, k := range streamKernels {
		each := func(shape string, batches, sizes []int64) {
			for _, batch := range batches {
				for _, n := range sizes {
					switch {
					case k.probe == probeSelect:
						p.add(point(k.probe, shape, batch, n, selectBudget))
					case batch*n <= p.mostTokens(shape):
						p.add(point(k.probe, shape, batch, n))
					}
				}
			}
		}
		for _, shape := range shapes {
			each(shape, pick(p, []int64{1, 2, 4, 8, 16, 32, 64}, []int64{1, 8, 32}),
				pick(p, k.full, k.quick))
		}
		each(manyQueries, []int64{1, 4, 16, 64}, k.grouped)
	}
}

// fit fits the kernels; a price is never faster than HBM. Lists are split until they fill the card,
// and merging them is what a small launch waits for.
func (decode) fit(s *Samples, p *hw.Profile, from source) (models []model) {
	ctas := ctasPerSM * s.sms()
	for _, k := range streamKernels {
		stream := k.stream(p)
		*stream = hw.Stream{}
		terms := []term{launch(&stream.Launch, k.what),
			over(k.bytes, &stream.Rate, p.GPU.HBMBandwidth.SI(), k.what)}
		if k.merges() && ctas > 0 {
			terms = append(terms, each(func(at observation) float64 {
				return float64(at.model.QHeads/at.model.KVHeads) *
					cost.ListSplits(ctas, lists(at), float64(at.At(k.axis)))
			}, &stream.Merge, noBlock,
				k.what+", merging the splits of a list, for each split and query head"))
		}
		l := law{model: k.probe, points: s.of(k.probe), terms: terms,
			price: func(p *hw.Profile, at observation) float64 {
				return cost.Seconds(k.cost(cost.Of(p, at.model)), sim.Work{
					DecodeTokens: kvTokens(at, k.axis), Decodes: int(at.At("batch")),
					ScoredBlocks: kvTokens(at, k.axis) / blockTokens})
			}}
		models = append(models, l.fit(from))
	}
	return models
}

// groupedContexts are the contexts at which manyQueries is measured.
var groupedContexts = []int64{4096, 32768}

// mostTokens returns the maximum tokens of a batch's KV in the card's memory.
func (p *planner) mostTokens(shape string) int64 {
	m, err := shapeModel(shape)
	if err != nil {
		panic(err) // shapes are built in
	}
	return min(p.limits.DeviceBytes, mostDeviceBytes) * 3 / 4 / m.LayerKVBytesPerToken()
}

// blockTokens is the tokens of a KV block in every attention probe.
const blockTokens = 32

// ctasPerSM is the number of a list's splits that the decode kernel runs concurrently on each SM.
const ctasPerSM = 2

// lists are the lists of a decode: one per request and KV head.
func lists(at observation) float64 { return float64(at.At("batch") * int64(at.model.KVHeads)) }

// kvTokens sums the tokens over requests.
func kvTokens(at observation, axis string) int64 { return at.At("batch") * at.At(axis) }

func kvBytes(axis string) func(at observation) float64 {
	return func(at observation) float64 {
		return float64(kvTokens(at, axis) * at.model.LayerKVBytesPerToken())
	}
}

// digestBytes is the bytes of the block metadata that scores read.
func digestBytes(at observation) float64 {
	return lists(at) * float64(at.At("context_tokens")/blockTokens) *
		float64(at.model.MetaBytesPerBlock())
}

// sms is the card's SMs, 0 where the samples have none.
func (s *Samples) sms() float64 {
	n, err := strconv.Atoi(s.Origin.SMs)
	if err != nil || n < 0 {
		return 0
	}
	return float64(n)
}
