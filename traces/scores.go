package traces

import (
	"math"
	"math/rand/v2"

	"sparseserve/sim/des"
)

// ScoreParams are the parameters of the attention-score process, one set for
// every model, system and experiment. They are fitted to published
// observables; see DefaultScores.
type ScoreParams struct {
	Drift float64 `toml:"drift"` // d, standard deviation of the slow part of a block's score
	Rho   float64 `toml:"rho"`   // AR(1) coefficient of the slow part from one decode step to the next
	Noise float64 `toml:"noise"` // e, standard deviation of the part that is new in each step

	Jump     float64 `toml:"jump"`      // j, standard deviation of the part that stays for a while and then jumps
	JumpRate float64 `toml:"jump_rate"` // probability of a jump in a decode step
}

// DefaultScores are fitted to published locality and to nothing else: SparseServe's
// Fig. 8 on its LongBench mix (LWM-7B, prompts up to 32k, 64 blocks of 32 tokens
// of which 2 sinks and 2 recent ones are fixed), 10.68 points of overlap from
// window 1 to 12 and 0.31 from 12 to 16; and ArkVale's LRU miss ratios. Without
// jumps no set of the other three meets both: ArkVale's misses stay at 1 % of
// the selection where the cache holds two of it, and at 0.2 % and more where it
// holds four, while the 0.31 points say that drifting blocks have come back by
// then. Blocks that have not been wanted for long and suddenly are miss in a
// cache of any size. TestScoresFitPublishedLocality prints and holds all of it.
var DefaultScores = ScoreParams{Drift: 0.30, Rho: 0.95, Noise: 0.26, Jump: 0.90, JumpRate: 0.02}

// Scores is the score process of block selection. Block b of one KV head has,
// at decode step t, the score
//
//	s_b(t) = mu_b + d x_b(t) + j y_b(t) + e n_b(t)
//
// with mu_b ~ N(0,1) fixed, x_b a unit AR(1) with coefficient rho, y_b ~ N(0,1)
// drawn anew at each jump, n_b white noise. All are independent between blocks. Scores are those after the merge
// of a KV head's query heads, so a process belongs to a KV head also under GQA.
//
// Drawing two normals per block and step would dominate a simulation, so one
// pool of noise rows d x + j y + e n is drawn once, on a circle of Steps() steps
// (rho^Steps and the chance of Steps without a jump are next to nothing, so the
// circle has the law of the line at every lag that matters), and a family gives each of its blocks its
// own mu, row and phase. Each block's score keeps its exact law; blocks of one
// family that share a row read it at different phases.
type Scores struct {
	p    ScoreParams
	seed uint64
	rows [][]float32
}

const (
	scoreSteps = 512
	scoreRows  = 1024
)

// NewScores draws the noise pool of a process.
func NewScores(p ScoreParams, seed uint64) *Scores {
	s := &Scores{p: p, seed: seed, rows: make([][]float32, scoreRows)}
	rng := des.Rand(seed, "traces/scores")
	for i := range s.rows {
		s.rows[i] = circle(p, rng)
	}
	return s
}

// circle returns d x(t) + j y(t) + e n(t) for one block, x a stationary AR(1) and
// y a jump process on a circle: run twice over the same innovations and jumps,
// the second round starts from where the first ended and no longer knows how
// that began.
func circle(p ScoreParams, rng *rand.Rand) []float32 {
	type draw struct {
		x, y float64
		jump bool
	}
	draws := make([]draw, scoreSteps)
	for t := range draws {
		draws[t].x = rng.NormFloat64() * math.Sqrt(1-p.Rho*p.Rho)
		if draws[t].jump = rng.Float64() < p.JumpRate; draws[t].jump {
			draws[t].y = rng.NormFloat64()
		}
	}
	x, y, row := 0.0, rng.NormFloat64(), make([]float32, scoreSteps)
	for round := range 2 {
		for t, w := range draws {
			x = p.Rho*x + w.x
			if w.jump {
				y = w.y
			}
			if round == 1 {
				row[t] = float32(p.Drift*x + p.Jump*y + p.Noise*rng.NormFloat64())
			}
		}
	}
	return row
}

// Steps returns the length of the circle.
func (s *Scores) Steps() int { return scoreSteps }

// Fill implements dsa.Scores. It works in tiles of a few steps: a tile's rows
// stay in the nearest cache while every block adds its column.
func (s *Scores) Fill(family, n int, dst []float32) {
	type column struct {
		mu    float32
		phase int32
		row   []float32
	}
	columns := make([]column, n)
	for b := range columns {
		h := des.Hash(s.seed, uint64(family), uint64(b), 0xb10c)
		columns[b] = column{float32(normal(h)), int32(h >> 10 % scoreSteps), s.rows[h%scoreRows]}
	}
	const tile = 16
	for t0 := 0; t0 < scoreSteps; t0 += tile {
		for b := range columns {
			c := &columns[b]
			at := (int(c.phase) + t0) % scoreSteps
			for t := range tile {
				dst[(t0+t)*n+b] = c.mu + c.row[at]
				if at++; at == scoreSteps {
					at = 0
				}
			}
		}
	}
}

// normal turns 64 hashed bits into a standard normal number (Box-Muller).
func normal(h uint64) float64 {
	u := (float64(des.Hash(h, 1)>>11) + 0.5) / (1 << 53)
	v := float64(des.Hash(h, 2)>>11) / (1 << 53)
	return math.Sqrt(-2*math.Log(u)) * math.Cos(2*math.Pi*v)
}
