package hw

import "math"

// promptGrid is the measured attention of whole prompts with the heads of one model. Between points
// a time is straight in prompts. It is straight in the logarithms of tokens and time, because it
// grows with the square of the tokens.
type promptGrid struct {
	launch float64 // of the shortest prompt, s
	many   curve   // tokens of a prompt, seconds of one among many
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
		p.many.add(tokens, c.y[len(c.y)-1]/c.last())
	}
	p.launch = p.times[0].y[0]
	return p
}

// each returns the seconds of one of many prompts of so many tokens. Beyond the grid they grow with
// the square of the tokens.
func (p *promptGrid) each(tokens float64) float64 {
	t, _ := p.many.power(tokens)
	return t * p.beyond(tokens)
}

func (p *promptGrid) beyond(tokens float64) float64 {
	over := max(1, tokens/p.many.last())
	return over * over
}

// seconds returns the time of prompts of so many tokens, not necessarily a whole number of them.
func (p *promptGrid) seconds(tokens, prompts float64) float64 {
	i, side := p.many.segment(tokens)
	t, _ := p.times[i].cost(prompts)
	if side == 0 && tokens > p.many.x[i] {
		longer, _ := p.times[i+1].cost(prompts)
		part := (math.Log(tokens) - p.many.logX[i]) / (p.many.logX[i+1] - p.many.logX[i])
		t *= math.Pow(longer/t, part)
	}
	return t * p.beyond(tokens)
}
