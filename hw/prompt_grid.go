package hw

import "math"

// promptGrid is the measured attention of whole prompts with the heads of one model. Between points
// a time is straight in prompts. It is straight in the logarithms of tokens and time, because it
// grows with the square of the tokens.
type promptGrid struct {
	launch float64 // of the shortest prompt, s
	tokens curve   // of a prompt, seconds
	times  []curve // for each of those tokens: prompts, seconds
}

// newPromptGrid reads a grid of tokens, prompts and some sizes of a model's heads.
func newPromptGrid(g *Grid, heads ...float64) *promptGrid {
	at, p := newLattice(g), &promptGrid{}
	for _, tokens := range g.Axes[0].At {
		var c curve
		for _, prompts := range g.Axes[1].At {
			sizes := Sizes{tokens, prompts}
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

// each returns the seconds of one of many prompts of so many tokens.
func (p *promptGrid) each(tokens float64) float64 {
	most := p.times[len(p.times)-1].last()
	return p.seconds(tokens, most) / most
}

// seconds returns the time of prompts of so many tokens, not necessarily a whole number of them.
// Beyond the grid it grows with the square of the tokens.
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
