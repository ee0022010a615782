package calibrate

import (
	"strconv"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/cost"
	"github.com/sparseserve/sparseserve/sim"
)

// streamKernel is a memory-bound kernel: t = launch + group splits merge + bytes/rate.
type streamKernel struct {
	probe, axis, what string // axis: of the tokens of a list
	stream            func(*hw.Profile) *hw.Stream
	cost              func(cost.Costs) cost.Cost
	bytes             func(observation) float64
}

var streamKernels = []streamKernel{
	{probe: probeDense, axis: "context_tokens", what: "paged dense decode kernel",
		bytes:  kvBytes("context_tokens"),
		stream: func(p *hw.Profile) *hw.Stream { return &p.DenseDecode },
		cost:   func(c cost.Costs) cost.Cost { return c.DenseDecode }},
	{probe: probeSparse, axis: "budget_tokens", what: "block-sparse decode kernel",
		bytes:  kvBytes("budget_tokens"),
		stream: func(p *hw.Profile) *hw.Stream { return &p.SparseDecode },
		cost:   func(c cost.Costs) cost.Cost { return c.SparseDecode }},
	{probe: probeSelect, axis: "context_tokens", what: "scores and top-k in one kernel",
		bytes:  digestBytes,
		stream: func(p *hw.Profile) *hw.Stream { return &p.Scoring },
		cost:   func(c cost.Costs) cost.Cost { return c.Scoring }},
}

// selectBudget is the number of tokens selected from every context.
const selectBudget = 2048

// merges reports whether the kernel splits long lists and merges their results.
func (k *streamKernel) merges() bool { return k.probe != probeSelect }

// fitDecode fits the kernels; a price is never faster than HBM. Lists are split until they fill the
// card, and merging them is what a small launch waits for.
func fitDecode(s *Samples, p *hw.Profile, from source) (models []model) {
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
