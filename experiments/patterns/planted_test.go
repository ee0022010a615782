package patterns

import (
	"math"
	"math/rand/v2"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/pattern"
)

// Planted kinds, in the order in which Planted deals them.
var PlantedKinds = []pattern.Kind{pattern.AShape, pattern.VerticalSlash, pattern.BlockSparse}

// Shape of planted heads: dimensions of noise, then dimensions of the pattern.
const (
	plantedDim = 64
	noiseDims  = 16
)

// Logits of planted keys are between these, over noise of unit variance.
const weakest, strongest = 5.0, 8.0

// Planted returns a synthetic head of n tokens whose attention has the pattern of its kind, with
// the sizes of the target of a Space for such prompts:
//
//	a-shape         equal weight on the first tokens and on a window
//	vertical-slash  random columns, and runs of diagonals
//	block-sparse    matching blocks, drawn anew for each block of queries
//
// Everything else is noise. Head i has kind i mod 3.
func Planted(seed uint64, i, tokens int) (*Head, pattern.Kind) {
	kind := PlantedKinds[i%len(PlantedKinds)]
	rng := des.Rand(des.Hash(seed, uint64(i)), "patterns.planted")
	h := &Head{D: plantedDim}
	for _, m := range []*[]float32{&h.Q, &h.K, &h.V} {
		*m = make([]float32, tokens*plantedDim)
	}
	spread := math.Sqrt(math.Sqrt(float64(plantedDim) / noiseDims)) // logits of unit variance
	for t := range tokens {
		for d := range plantedDim {
			h.V[t*plantedDim+d] = float32(rng.NormFloat64())
		}
		for d := range noiseDims {
			h.Q[t*plantedDim+d] = float32(spread * rng.NormFloat64())
			h.K[t*plantedDim+d] = float32(spread * rng.NormFloat64())
		}
	}
	p := plant{h, rng, weakest + (strongest-weakest)*rng.Float64()}
	switch kind {
	case pattern.AShape:
		p.aShape()
	case pattern.VerticalSlash:
		p.verticalSlash()
	case pattern.BlockSparse:
		p.blockSparse()
	}
	return h, kind
}

// plant writes a pattern into a head. logit is the logit of planted keys.
type plant struct {
	*Head
	rng   *rand.Rand
	logit float64
}

// gain returns the factor on unit vectors of queries and keys that gives a logit of x.
func gain(x float64) float64 { return math.Sqrt(x * math.Sqrt(plantedDim)) }

// columns gives keys a common direction that all queries attend to.
func (p *plant) columns(keys []int) {
	g := float32(gain(p.logit))
	for t := range p.Tokens() {
		p.Q[t*p.D+noiseDims] = g
	}
	for _, j := range keys {
		p.K[j*p.D+noiseDims] = g
	}
}

// diagonals gives each key a logit by its distance from the row: the Fourier series, with `pairs`
// pairs of dimensions from dim on, of a box over the distances [from, to]. Its edges have width
// period / pairs.
func (p *plant) diagonals(from, to, period float64, dim, pairs int) {
	centre, width := (from+to)/2, to-from
	for n := range pairs {
		// coefficient of cos(omega (distance - centre)), Lanczos' factor against overshoot
		omega := 2 * math.Pi * float64(n) / period
		c := 2 * width / period * sinc(omega*width/2) * sinc(math.Pi*float64(n)/float64(pairs))
		if n == 0 {
			c /= 2
		}
		g, sign := gain(p.logit*math.Abs(c)), math.Copysign(1, c)
		d := dim + 2*n
		for t := range p.Tokens() {
			q, k := omega*(float64(t)-centre), omega*float64(t)
			p.Q[t*p.D+d], p.Q[t*p.D+d+1] = float32(sign*g*math.Cos(q)), float32(sign*g*math.Sin(q))
			p.K[t*p.D+d], p.K[t*p.D+d+1] = float32(g*math.Cos(k)), float32(g*math.Sin(k))
		}
	}
}

func sinc(x float64) float64 {
	if x == 0 {
		return 1
	}
	return math.Sin(x) / x
}

func (p *plant) aShape() {
	sink := scaled(targetHead.A, p.Tokens(), pattern.BlockTokens)
	window := float64(scaled(targetHead.B, p.Tokens(), pattern.BlockTokens))
	first := make([]int, sink)
	for j := range first {
		first[j] = j
	}
	p.columns(first)
	p.diagonals(-window, 0.9*window, 9*window, noiseDims+1, 23)
}

// verticalSlash plants random columns and a slash line of neighbouring diagonals that repeats at
// the period.
func (p *plant) verticalSlash() {
	n := p.Tokens()
	columns := make([]int, 24+p.rng.IntN(24))
	for i := range columns {
		columns[i] = p.rng.IntN(n * 7 / 8)
	}
	from := float64(n/16 + p.rng.IntN(n/4))
	p.diagonals(from, from+float64(n)/64, float64(n)/2, noiseDims+1, 23)
	p.logit++
	p.columns(columns)
}

// blockSparse assigns every block of keys and every block of queries to a random cluster.
func (p *plant) blockSparse() {
	g := gain(p.logit)
	const dims = plantedDim - noiseDims - 1
	blocks := (p.Tokens() + pattern.BlockTokens - 1) / pattern.BlockTokens
	clusters := make([][]float64, 8+p.rng.IntN(5))
	for c := range clusters {
		clusters[c] = make([]float64, dims)
		norm := 0.0
		for d := range clusters[c] {
			clusters[c][d] = p.rng.NormFloat64()
			norm += clusters[c][d] * clusters[c][d]
		}
		for d := range clusters[c] {
			clusters[c][d] *= g / math.Sqrt(norm)
		}
	}
	for b := range blocks {
		q, k := clusters[p.rng.IntN(len(clusters))], clusters[p.rng.IntN(len(clusters))]
		for t := b * pattern.BlockTokens; t < min(p.Tokens(), (b+1)*pattern.BlockTokens); t++ {
			for d := range dims {
				p.Q[t*p.D+noiseDims+1+d] = float32(q[d])
				p.K[t*p.D+noiseDims+1+d] = float32(k[d])
			}
		}
	}
}
