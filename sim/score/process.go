package score

import (
	"math"
	"math/rand/v2"
	"sync"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/dsa"
)

// Params are the parameters of the attention-score process, one set for every model,
// system and experiment. They are fitted to published observables; see Default.
//
// A block of true score T holds exp(beta T) of the attention, where beta, the skew, differs by
// layer, head and query token. docs/configuration.md prints the comments and ranges of the
// fields. Standard deviations are in units of the spread of scores between blocks.
type Params struct {
	// standard deviation of the slow part of a block's score
	Drift float64 `toml:"drift" used:"sparse,drawn,scored" range:">= 0, <= 1000"`
	// AR(1) coefficient of the slow part between decode steps
	Rho float64 `toml:"rho" used:"sparse,drawn,scored" range:">= 0, < 1"`
	// standard deviation of the part that is drawn anew in each step
	Noise float64 `toml:"noise" used:"sparse,drawn,scored" range:">= 0, <= 1000"`

	// standard deviation of the part that stays constant between jumps
	Jump float64 `toml:"jump" used:"sparse,drawn,scored" range:">= 0, <= 1000"`
	// probability of a jump in a decode step
	JumpRate float64 `toml:"jump_rate" used:"sparse,drawn,scored" range:">= 0, <= 1"`

	// factor on drift, noise and jump if an indexer scores single tokens
	TokenMotion float64 `toml:"token_motion" used:"sparse,drawn,scored,indexer" range:">= 0, <= 1000"`

	// standard deviation of token scores within a page of 32 tokens
	Within float64 `toml:"within" used:"sparse,drawn,infinigen" range:">= 0, <= 1000"`
	// added to the score of the first block
	Sink float64 `toml:"sink" used:"sparse,drawn,scored" range:">= -1000, <= 1000"`
	// added to the score of the newest full block
	Recent float64 `toml:"recent" used:"sparse,drawn,scored" range:">= -1000, <= 1000"`

	// standard deviation of a query head's score around that of a KV head shared by several
	Group float64 `toml:"group" used:"sparse,drawn,differ,groups" range:">= 0, <= 1000"`

	// median of beta, which sets how sharply attention concentrates on high scores
	Skew float64 `toml:"skew" used:"sparse,drawn,weighs" range:"> 0, <= 1000"`
	// standard deviation of log beta between layers
	SkewLayers float64 `toml:"skew_layers" used:"sparse,drawn,weighs" range:">= 0, <= 1000"`
	// standard deviation of log beta between the heads of a layer
	SkewHeads float64 `toml:"skew_heads" used:"sparse,drawn,weighs" range:">= 0, <= 1000"`
	// standard deviation of log beta between the query tokens of a head
	SkewTokens float64 `toml:"skew_tokens" used:"sparse,drawn,weighs" range:">= 0, <= 1000"`

	Estimates `toml:"estimates"`
}

// Estimates are the errors of the scores that selections estimate.
type Estimates struct {
	// standard deviation of the true score around the cuboid-mean estimate
	Error float64 `toml:"cuboid_mean" used:"sparse,drawn,scored,arkvale" range:">= 0, <= 1000"`
	// standard deviation of the min/max estimate around the true score
	MinMaxError float64 `toml:"min_max" used:"sparse,drawn,scored,quest" range:">= 0, <= 1000"`
	// standard deviation of the mean-key estimate around the true score
	MeanError float64 `toml:"mean" used:"sparse,drawn,scored,mean" range:">= 0, <= 1000"`
	// standard deviation of the estimate from representative tokens around the true score
	RepresentativeError float64 `toml:"representative" used:"sparse,drawn,scored,infllm" range:">= 0, <= 1000"`
	// standard deviation of the score predicted by the layer before around the true score
	SpeculationError float64 `toml:"speculation" used:"sparse,drawn,infinigen" range:">= 0, <= 1000"`
}

// Default is fitted to published observables. Each mechanism is fitted to its own observables.
//
// Drift to jump rate: SparseServe's Fig. 8 on its LongBench mix (LWM-7B, prompts up to 32k, 64
// blocks of 32 tokens of which 2 sinks and 2 recent ones are fixed), 10.68 points of overlap
// from window 1 to 12 and 0.31 from 12 to 16; and ArkVale's LRU miss ratios. Both need jumps:
// with only drift and noise, blocks that miss in a cache of four selections would recur within
// 16 steps (TestScoresFitPublishedLocality).
//
// Token motion: the top 2,048 tokens of DeepSeek's indexer overlap from step to step by 95 %
// and more (vLLM-Ascend's IndexCache, 2026). At 32k tokens this value gives 95 %
// (TestTokensFitPublishedOverlap). The reuse distance of tokens is assumed to equal that of
// blocks, because nothing is published.
//
// Errors and the spread within pages follow from the geometry of keys, with one parameter
// fitted to ArkVale's recall by cuboid-mean (TestDigestsFitPublishedRecall).
//
// Skew and its spread between layers: the text of PSA's Fig. 2 (TestSkewFitsPublishedSparsity,
// package experiments). Group spread: PSA's Fig. 5, where ArkVale attends to 2.4 times PSA's KV
// on a model with shared KV heads (TestProxyOfPublishedRatio), and SparseServe's appendix A.1,
// where a small budget costs such a model more (TestPublishedBudgetsByGroup). If query heads
// select separately, the group spread moves like the process itself, because published locality
// is measured on heads that select for themselves (TestQueryHeadsHavePublishedLocality).
//
// The following is assumed because nothing is published: heads of a layer differ more than
// layers, query tokens differ less, and the first block (attention sink) holds more than half
// of a median head's attention.
var Default = Params{
	Drift: 0.30, Rho: 0.95, Noise: 0.26, Jump: 0.90, JumpRate: 0.02, TokenMotion: 0.15,
	Within: 0.66, Sink: 6, Recent: 3, Group: 0.7, Skew: 2.0, SkewLayers: 0.16, SkewHeads: 0.4,
	SkewTokens: 0.1,
	Estimates: Estimates{Error: 0.25, MinMaxError: 0.65, MeanError: 0.6, RepresentativeError: 0.46,
		SpeculationError: 0.76},
}

// Process is the score process of block selection. The criticality of block b of one KV head at
// decode step t is
//
//	s_b(t) = mu_b + d x_b(t) + j y_b(t) + e n_b(t)
//
// with mu_b ~ N(0,1) fixed, x_b a unit AR(1) with coefficient rho, y_b ~ N(0,1) redrawn at each
// jump, and n_b white noise, all independent between blocks. It is the estimate of ArkVale's
// cuboid-mean digest. weights.go has the attention of blocks and the estimates of other
// digests. Criticality is computed after a KV head's query heads are merged, so also under GQA
// a process belongs to a KV head. The attention of blocks differs between query heads. If query
// heads select separately, their criticality differs too.
//
// Two normal draws per block and step would dominate the cost of a simulation. Therefore a pool
// of noise rows d x + j y + e n is drawn once, over a cycle of Steps() steps (rho^Steps and the
// probability of Steps steps without a jump are negligible). A family gives each block its own
// mu, row and phase. Each block's score keeps its exact law. Blocks of one family that share a
// row read it at different phases.
type Process struct {
	p      Params
	seed   uint64
	rows   [][]float32
	errors [][]float32        // of the estimates, with unit variance
	skews  []float64          // by class
	tokens func() [][]float32 // noise rows of tokens that an indexer scores
}

const (
	scoreSteps = 512
	scoreRows  = 1024
	errorRows  = 256
)

// New draws the noise pool of a process.
func New(p Params, seed uint64) *Process {
	s := &Process{p: p, seed: seed, rows: make([][]float32, scoreRows)}
	rng := des.Rand(seed, "traces/scores")
	for i := range s.rows {
		s.rows[i] = cycle(p, rng)
	}
	unit := Params{Drift: math.Sqrt(0.5), Rho: p.Rho, Noise: math.Sqrt(0.5)}
	rng = des.Rand(seed, "traces/scores/errors")
	s.errors = make([][]float32, errorRows)
	for i := range s.errors {
		s.errors[i] = cycle(unit, rng)
	}
	s.skews = p.skews()
	s.tokens = sync.OnceValue(s.tokenRows)
	return s
}

// tokenRows are the noise rows scaled to the motion of single tokens.
func (s *Process) tokenRows() [][]float32 {
	rows := make([][]float32, len(s.rows))
	for i, row := range s.rows {
		rows[i] = make([]float32, len(row))
		for t, x := range row {
			rows[i][t] = float32(s.p.TokenMotion) * x
		}
	}
	return rows
}

// cycle returns d x(t) + j y(t) + e n(t) of one block over a cycle. It runs two rounds over the
// same innovations and jumps. The second round starts from the end of the first, so that the
// initial state no longer matters.
func cycle(p Params, rng *rand.Rand) []float32 {
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

// Steps returns the number of steps of the cycle.
func (s *Process) Steps() int { return scoreSteps }

// Fill implements dsa.Scores.
func (s *Process) Fill(family, n int, sheet *dsa.Sheet) {
	columns, page := s.columns(family, n, sheet), pageOf(sheet)
	sheet.Critical = resize(sheet.Critical, sheet.Steps*n)
	write(sheet.Critical, columns, sheet.First)
	if sheet.Weighs || s.p.errorOf(sheet.Digest) > 0 {
		s.fillScore(family, n, page, sheet)
	}
	if sheet.Apart {
		s.perQueryHead(family, n, sheet, &sheet.Each, sheet.Critical)
	}
}

// fillScore writes the true scores. If the digest is not cuboid-mean, it also writes the
// criticality that this digest estimates.
func (s *Process) fillScore(family, n, page int, sheet *dsa.Sheet) {
	if len(sheet.Score) == 0 {
		sheet.Score = make([][]float32, 1)
	}
	score := append(sheet.Score[0][:0], sheet.Critical...)
	add(score, n, sheet.First, float32(s.p.Error), s.errorsOf(family, page, scoreError))
	if estimate := s.p.errorOf(sheet.Digest); estimate > 0 { // a digest with its own error
		copy(sheet.Critical, score)
		add(sheet.Critical, n, sheet.First, float32(estimate), s.errorsOf(family, 1, digestError))
	}
	if sheet.Score[0] = score; sheet.Weighs {
		s.perQueryHead(family, n, sheet, &sheet.Score, score)
		s.fillKept(family, sheet)
	}
}

// columns returns the score columns of all candidates.
func (s *Process) columns(family, n int, sheet *dsa.Sheet) []blockColumn {
	columns := make([]blockColumn, n)
	for b := 0; b < n; {
		if sheet.Digest == dsa.Speculated {
			page := s.page(family, b/pageTokens, sheet)
			b += copy(columns[b:], page[:])
		} else {
			columns[b] = s.candidate(family, b, sheet)
			b++
		}
	}
	for b := range columns {
		if s.newest(b, n, sheet) {
			columns[b].mu += float32(s.p.Recent)
		}
	}
	return columns
}

// candidate returns the score column of candidate b of a sheet.
func (s *Process) candidate(family, b int, sheet *dsa.Sheet) blockColumn {
	if sheet.Digest == dsa.Speculated {
		return s.page(family, b/pageTokens, sheet)[b%pageTokens]
	}
	rows := s.rows
	if sheet.Digest == dsa.Indexed {
		rows = s.tokens()
	}
	c := s.blockOf(family, b, rows)
	if b == 0 && sheet.Sinks == 0 {
		c.mu += float32(s.p.Sink)
	}
	return c
}

// newest reports whether candidate b of n is the newest full block or, if candidates are
// tokens, in it.
func (s *Process) newest(b, n int, sheet *dsa.Sheet) bool {
	page := pageOf(sheet)
	return b/page == n/page-1 && sheet.Window < max(2, page) && (b >= page || sheet.Sinks > 0)
}

// pageOf returns the number of candidates of a sheet that share a page's score.
func pageOf(sheet *dsa.Sheet) int {
	if sheet.Digest == dsa.Speculated { // a candidate is a token
		return pageTokens
	}
	return 1
}

// blockColumn is one block's scores: mu plus a noise row that starts at a phase.
type blockColumn struct {
	mu    float32
	phase int32
	row   []float32
}

func (s *Process) block(family, b int) blockColumn { return s.blockOf(family, b, s.rows) }

func (s *Process) blockOf(family, b int, rows [][]float32) blockColumn {
	h := des.Hash(s.seed, uint64(family), uint64(b), 0xb10c)
	return blockColumn{float32(normal(h)), int32(h >> 10 % scoreSteps), rows[h%scoreRows]}
}

// write computes all scores of the columns from step first on. It works in tiles of a few
// steps, so that a tile's rows stay in the L1 cache while every block adds its column.
func write(dst []float32, columns []blockColumn, first int) {
	const tile = 16
	n := len(columns)
	if n == 0 {
		return
	}
	steps := len(dst) / n
	for t0 := 0; t0 < steps; t0 += tile {
		for b := range columns {
			c := &columns[b]
			at := (int(c.phase) + first + t0) % scoreSteps
			for t := range min(tile, steps-t0) {
				dst[(t0+t)*n+b] = c.mu + c.row[at]
				if at++; at == scoreSteps {
					at = 0
				}
			}
		}
	}
}

// normal maps 64 hashed bits to a standard normal number (Box-Muller).
func normal(h uint64) float64 {
	u := (float64(des.Hash(h, 1)>>11) + 0.5) / (1 << 53)
	v := float64(des.Hash(h, 2)>>11) / (1 << 53)
	return math.Sqrt(-2*math.Log(u)) * math.Cos(2*math.Pi*v)
}
