package calibrate

import (
	"math"

	"github.com/sparseserve/sparseserve/hw"
)

// progressive is PSA's decode attention, in rounds of a microbatch of blocks.
type progressive struct{}

const (
	probePSA         = "psa_decode"
	probePSALaunches = "psa_launches"
	probePSAUneven   = "psa_uneven"
)

func (progressive) probes() []Probe {
	axes := []string{"batch", "budget_tokens", "micro_blocks"}
	return []Probe{
		{Name: probePSA, setup: (*gpuRun).setupPSA,
			Means: "PSA decode that attends to all blocks of the budget, in rounds of a " +
				"microbatch of blocks, L2 flushed; " + gpuTime,
			Axes: axes, shaped: true},
		{Name: probePSALaunches, setup: (*gpuRun).setupPSA,
			Means: "the same with a launch for each microbatch; " + gpuTime,
			Axes:  axes, shaped: true},
		{Name: probePSAUneven, setup: (*gpuRun).setupPSA,
			Means: "PSA decode of lists that end in different rounds, most of them early: the one of rank " +
				"x lasts x^3 of the longest; L2 flushed; " + gpuTime,
			Axes: []string{"batch", "longest_tokens", "micro_blocks"}, shaped: true},
	}
}

// microbatch is PSA's microbatch at most points, in blocks.
const microbatch = 16

func (progressive) points(p *planner) {
	p.eachBatch(func(shape string, batch int64, at func(order int, p Point)) {
		for i, budget := range p.budgets() {
			if batch*budget <= p.mostTokens(shape) {
				at(orderBudgets+2*i+1, point(probePSA, shape, batch, budget, microbatch))
			}
		}
	})
	for i, shape := range shapes {
		for _, batch := range []int64{1, 8, 32} {
			for _, budget := range p.budgets() {
				p.addAt(stageDecode, rank{i, orderRelaunched},
					point(probePSALaunches, shape, batch, budget, microbatch))
			}
		}
		for _, batch := range pick(p, []int64{1, 2, 3, 4, 6, 8, 12}, []int64{1, 6}) {
			for _, longest := range pick(p, []int64{2048, 4096, 6144}, []int64{4096}) {
				p.addAt(stageDecode, rank{i, orderUneven},
					point(probePSAUneven, shape, batch, longest, microbatch))
			}
		}
		for _, micro := range pick(p, []int64{8, 32}, []int64{8}) {
			for _, batch := range []int64{1, 8} {
				for _, budget := range p.budgets() {
					p.addAt(stageDecode, rank{i, orderMicro}, point(probePSA, shape, batch, budget, micro))
				}
			}
		}
	}
	p.eachGroupedBatch(func(batch int64, at func(order int, p Point)) {
		for i, budget := range groupedBudgets {
			at(orderBudgets+2*i+1, point(probePSA, manyQueries, batch, budget, microbatch))
		}
	})
}

func (progressive) fit(s *Samples, p *hw.Profile, from source) []model {
	if m, ok := fitPSA(s, p, from); ok {
		return []model{m}
	}
	return nil
}

// fitPSA fits the PSA kernel (hw: psaKernel).
func fitPSA(s *Samples, p *hw.Profile, from source) (model, bool) {
	const what = "PSA decode kernel"
	all := s.of(probePSA, probePSALaunches, probePSAUneven)
	if len(all) == 0 {
		return model{}, false
	}
	fit, held := all.split(func(at observation) string {
		return at.Probe + at.Shape +
			byAxis("micro_blocks")(at)
	}, 2, nil)
	hbm, sms := p.GPU.HBMBandwidth.SI(), s.sms()
	c := refine(fit, []float64{7e-6, 2e-6, hbm * 0.9, 7e-6},
		[]bound{callBound, blockBound, {rateBound.low, hbm}, blockBound},
		func(c []float64, at observation) float64 {
			n, least := float64(psaLaunches(at)), c[1]
			if lists(at) <= sms {
				least *= lists(at) / sms
			}
			t := c[0] + (n-1)*c[3]
			for _, bytes := range psaRoundBytes(at) {
				t += math.Max(least, bytes/c[2])
			}
			return t
		})
	p.PSADecode = hw.PSADecode{
		Launch: from.us(c[0], what), Rate: from.gbps(c[2], what),
		Round:    from.us(c[1], what+", for each microbatch of one list, its decision included"),
		Relaunch: from.us(c[3], what+", for each launch but the first"),
	}
	return model{name: "psa_decode", fit: fit, held: held,
		draw: picture{x: psaBytes, xLabel: "bytes", rate: psaBytes}, price: pricePSA}, true
}

// psaRounds, psaLength and psaLaunches are the parameters of a PSA point: microbatches and blocks
// of a list, and launches, either 1 or one per round.
func psaRounds(at observation) float64 {
	return math.Ceil(psaLength(at) / float64(at.At("micro_blocks")))
}

func psaLength(at observation) float64 { return float64(at.At("budget_tokens") / blockTokens) }

func psaLaunches(at observation) int {
	if at.Probe == probePSALaunches {
		return int(psaRounds(at))
	}
	return 1
}

// psaRoundBytes returns the bytes that all lists of a point attend to in each round.
func psaRoundBytes(at observation) (rounds []float64) {
	// of a list
	each := float64(at.At("micro_blocks")*blockTokens*at.model.LayerKVBytesPerToken()) /
		float64(at.model.KVHeads)
	if at.Probe == probePSAUneven {
		for _, lists := range reach(at.Point, at.model) {
			rounds = append(rounds, float64(lists)*each)
		}
		return rounds
	}
	n := psaRounds(at)
	for range int(n) {
		rounds = append(rounds, kvBytes("budget_tokens")(at)/n)
	}
	return rounds
}

func psaBytes(at observation) (sum float64) {
	for _, bytes := range psaRoundBytes(at) {
		sum += bytes
	}
	return sum
}

// pricePSA returns a profile's price of a point.
func pricePSA(p *hw.Profile, at observation) float64 {
	t, _ := p.PSASeconds(at.model, int(at.At("batch")), psaRoundBytes(at), psaLaunches(at))
	return t
}
