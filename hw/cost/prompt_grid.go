package cost

import (
	"math"

	"github.com/sparseserve/sparseserve/hw"
)

// promptGrid is the measured attention of whole prompts with the heads of one model. Times are
// interpolated linearly in prompts, and linearly in log tokens and log time because time grows
// quadratically with tokens.
type promptGrid struct {
	launch float64 // time of one shortest prompt, s
	tokens curve   // of a prompt, seconds
	times  []curve // for each token count: prompts, seconds
}

// newPromptGrid reads a grid of tokens, prompts and the head sizes of a model.
func newPromptGrid(g *hw.Grid, heads ...float64) *promptGrid {
	at, p := newLattice(g), &promptGrid{}
	for _, tokens := range g.Axes[0].At {
		var c curve
		for _, prompts := range g.Axes[1].At {
			sizes := hw.Sizes{tokens, prompts}
			copy(sizes[2:], heads)
			t, _ := at.seconds(sizes)
			c.add(prompts, t)
		}
		p.times = append(p.times, c)
		p.tokens.add(tokens, c.y[0])
	}
	p.launch = p.times[0].y[0]
	return p
}

// each returns the seconds per prompt of the given tokens in a large batch.
func (p *promptGrid) each(tokens float64) float64 {
	most := p.times[len(p.times)-1].last()
	return p.seconds(tokens, most) / most
}

// seconds returns the time of a number of prompts, not necessarily whole, of the given tokens.
// Beyond the grid it grows quadratically with tokens.
func (p *promptGrid) seconds(tokens, prompts float64) float64 {
	i, side := p.tokens.segment(tokens)
	t, _ := p.times[i].cost(prompts)
	if side == 0 && tokens > p.tokens.x[i] {
		longer, _ := p.times[i+1].cost(prompts)
		part := (math.Log(tokens) - p.tokens.logX[i]) / (p.tokens.logX[i+1] - p.tokens.logX[i])
		t *= math.Pow(longer/t, part)
	}
	over := max(1, tokens/p.tokens.last())
	return t * over * over
}
