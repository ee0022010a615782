package capacity

import (
	"cmp"
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/sim/sched"
)

// stepSizes are the tokens per step that a plan tries if the configuration sets none: small steps
// bound the time that decodes wait for prefills, large steps read the weights less often.
var stepSizes = []int{1024, 2048, 4096, 8192, 16384}

// Other step sizes are tried for at most this many candidates: for all that can be the cheapest, or
// for a few if no candidate meets the level.
const mostStepped, mostSteppedMissing = 6, 2

// otherSteps returns the options with step sizes other than the engine default: first options that
// meet the level, cheapest first, then options with the lowest price per HBM bandwidth.
func otherSteps(options []*option, best float64) []*option {
	most := mostStepped
	if math.IsInf(best, 1) {
		most = mostSteppedMissing
	}
	order := slices.DeleteFunc(slices.Clone(options), func(o *option) bool {
		s := &o.Point.System
		return !sched.AllocatesByChunk(s.Scheduler) || s.Prefill.Split != "chunked" ||
			float64(1+o.spare)*o.replica > best*(1+1e-9)
	})
	slices.SortStableFunc(order, func(x, y *option) int {
		price := func(o *option) float64 {
			if o.found == nil {
				return math.Inf(1)
			}
			return o.usd()
		}
		return cmp.Or(cmp.Compare(price(x), price(y)), cmp.Compare(x.perByte, y.perByte))
	})
	var steps []*option
	for _, o := range order[:min(most, len(order))] {
		for _, tokens := range stepSizes {
			if c, ok := o.withStep(tokens); ok {
				c.index = len(options) + len(steps)
				steps = append(steps, c)
			}
		}
	}
	return steps
}

// withStep returns the option with another step size, if it uses step sizes and has memory for it.
func (o *option) withStep(tokens int) (*option, bool) {
	c := *o
	c.found, c.runs, c.outcome, c.family = nil, nil, "", o.Label()
	s := &c.Point.System
	if tokens == s.MaxTokens {
		return nil, false
	}
	if s.Prefill.ChunkTokens >= s.MaxTokens {
		s.Prefill.ChunkTokens = tokens
	}
	s.Prefill.ChunkTokens, s.MaxTokens = min(s.Prefill.ChunkTokens, tokens), tokens
	if most, err := roomOf(&c.Point); err != nil || most.whole() < o.traffic.longest {
		return nil, false
	}
	c.Settings = append(slices.Clone(o.Settings),
		config.Setting{Key: "system.max_tokens", Value: int64(tokens)})
	return &c, true
}
