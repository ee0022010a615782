package hw

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/pattern"
)

// SparseRow is the cost of sparse prefill attention with one pattern. Published rows have launch,
// efficiency and index; calibrated rows have a tile and no index.
type SparseRow struct {
	Pattern string `toml:"pattern"`
	Launch  Figure `toml:"launch" dim:"time"` // of a layer's heads of the pattern
	// Efficiency is the rate relative to dense prefill attention with the same chunk. With a tile it
	// is relative to long chunks.
	Efficiency Figure `toml:"efficiency" dim:"ratio"`
	// Index is the rate of reading and writing an index, relative to HBM bandwidth.
	Index Figure `toml:"index,omitempty" dim:"ratio,optional"`

	// Tile is the time per tile (128 queries of a head) on a full card, in addition to its FLOPs.
	Tile Figure `toml:"tile,omitempty" dim:"time,optional"`
	// Columns is the efficiency of keys that are gathered one at a time.
	Columns Figure `toml:"columns,omitempty" dim:"ratio,optional"`
	// IndexLaunch is the launch of the index kernels. Scan is their rate over Q and K. Choice is the
	// rate of top-k. Step is the time of each sequential part: a slash line, or a tile whose blocks
	// are ranked.
	IndexLaunch Figure `toml:"index_launch,omitempty" dim:"time,optional"`
	Scan        Figure `toml:"scan,omitempty" dim:"rate,optional" by:"peak"`
	Choice      Figure `toml:"choice,omitempty" dim:"rate,optional" by:"peak"`
	Step        Figure `toml:"step,omitempty" dim:"time,optional"`
}

// sparsePrefill models one layer's sparse causal attention of prompt chunks. The heads of a pattern
// share a kernel; the kernels run in sequence. Calibrated rows:
//
//	t     = sum_p launch_p + sum_i ceil(T_i / SMs) SMs (tile_p + FLOPs_ip / (T_i R))
//	index = sum_p launch'_p + sum_i scanned_ip / scan_p + listed_ip / choice_p + steps_ip step_p
//
// with T_i tiles of queries and heads, the last tile whole, and R the efficiency of blocks or of
// gathered columns, multiplied by dense attention's rate for long chunks. scanned and listed are
// bytes (pattern.Head); HBM bandwidth bounds scan. Before these kernels, K and V of a chunk with a
// prefix in KV blocks are copied to tensors (prefillAttention.gathered). Published rows:
//
//	t     = sum_p launch_p + sum_i FLOPs_ip / (efficiency_p rate(q_i))
//	index = sum_h bytes_h(q, prefix) / (index_p HBM)   (pattern.Head.IndexBytes)
//
// rate is prefillAttention's and FLOPs are 4 d sum_h pairs_h(q, prefix). Lower bounds are FLOPs at
// peak, and the K and V of the last row, or an index's bytes, at HBM bandwidth.
type sparsePrefill struct {
	dense prefillAttention
	dim   int
	hbm   float64
	rows  map[pattern.Kind]sparseCost
}

type sparseCost struct {
	launch, efficiency, index float64
	assumed                   bool // the card has no row for this pattern

	tile, columns, indexLaunch, scan, choice, step float64 // tile: 0 for published rows
}

func newSparsePrefill(p *Profile, m *Model, dense prefillAttention) sparsePrefill {
	s := sparsePrefill{
		dense: dense, dim: m.HeadDim, hbm: p.GPU.HBMBandwidth.SI(), rows: map[pattern.Kind]sparseCost{},
	}
	add := func(rows []SparseRow, assumed bool) {
		for _, r := range rows {
			s.rows[pattern.Kind(r.Pattern)] = sparseCost{
				launch: r.Launch.SI(), efficiency: r.Efficiency.SI(), index: r.Index.optional(),
				assumed: assumed, tile: r.Tile.optional(), columns: r.Columns.optional(),
				indexLaunch: r.IndexLaunch.optional(), scan: r.Scan.optional(),
				choice: r.Choice.optional(), step: r.Step.optional(),
			}
		}
	}
	add(publishedRows(), true)
	add(p.SparsePrefill, false)
	return s
}

// publishedRows returns the rows of MInference's own kernels. All figures but launches are shares
// of the rates of the card's dense kernel and HBM.
var publishedRows = sync.OnceValue(func() []SparseRow {
	k, err := loadKernels("ampere", "")
	if err != nil {
		panic(err) // a built-in file
	}
	return k.SparsePrefill
})

// freeSparseRows returns rows of kernels as fast as the dense kernel, with indices as fast as HBM.
func freeSparseRows() []SparseRow {
	rows := slices.Clone(publishedRows())
	for i := range rows {
		r := &rows[i]
		r.Launch.Value, r.Launch.Unit, r.Efficiency.Value = noTime, "s", 1
		if r.Index.Set() {
			r.Index.Value = 1
		}
	}
	return rows
}

// assumes reports whether the card has no row for the pattern of some group.
func (s *sparsePrefill) assumes(groups []pattern.Group) bool {
	return slices.ContainsFunc(groups, func(g pattern.Group) bool { return s.rows[g.Kind].assumed })
}

// of returns the seconds of attention and of the indices.
func (s *sparsePrefill) of(groups []pattern.Group, spans []sim.Span) (attention, index float64) {
	var seen []pattern.Kind
	for _, g := range groups {
		switch {
		case s.rows[g.Kind].tile == 0:
			a, i := s.published(&g, spans)
			attention, index = attention+a, index+i
		case !slices.Contains(seen, g.Kind):
			seen = append(seen, g.Kind)
			a, i := s.calibrated(g.Kind, groups, spans)
			attention, index = attention+a, index+i
		}
	}
	if len(seen) > 0 {
		for _, span := range spans {
			attention += s.dense.gathered(span)
		}
	}
	return attention, index
}

// published returns the times of a group by a published row.
func (s *sparsePrefill) published(g *pattern.Group, spans []sim.Span) (attention, index float64) {
	cost, ran := s.rows[g.Kind], false
	for _, span := range spans {
		if span.Query <= 0 {
			continue
		}
		ran = true
		attention += s.attention(g, cost, span)
		if g.Kind.Indexed() {
			rate := math.Min(1, cost.index) * s.hbm
			index += g.Heads * g.IndexBytes(span.Query, span.Prefix, s.dim) / rate
		}
	}
	if ran {
		attention += cost.launch
	}
	return attention, index
}

func (s *sparsePrefill) attention(g *pattern.Group, cost sparseCost, span sim.Span) float64 {
	rate, _ := s.dense.rate.power(math.Max(float64(span.Query), s.dense.shortest()))
	flops, floor := s.work(g, span)
	return math.Max(flops/(cost.efficiency*rate), floor)
}

// work returns the FLOPs of a group's attention and the lower bound of its time in seconds.
func (s *sparsePrefill) work(g *pattern.Group, span sim.Span) (flops, floor float64) {
	share := g.Heads / s.dense.heads
	flops = share * s.dense.flops * g.Pairs(span.Query, span.Prefix)
	bytes := share * s.dense.kvBytes * g.Kept(float64(span.Prefix+span.Query))
	return flops, s.dense.peak.floor(flops, bytes)
}

// calibrated returns the times of all heads of a pattern, which share kernels.
func (s *sparsePrefill) calibrated(kind pattern.Kind, groups []pattern.Group, spans []sim.Span) (
	attention, index float64) {
	cost := s.rows[kind]
	for _, span := range spans {
		if span.Query <= 0 {
			continue
		}
		attention += s.tiles(cost, kind, groups, span)
		if kind.Indexed() {
			index += s.index(cost, kind, groups, span)
		}
	}
	if attention > 0 {
		attention, index = attention+cost.launch, index+cost.indexLaunch
	}
	return attention, index
}

// tiles returns the time of a kernel for a chunk's query tiles, which run in waves.
func (s *sparsePrefill) tiles(
	cost sparseCost, kind pattern.Kind, groups []pattern.Group, span sim.Span) float64 {
	rows := (span.Query + pattern.TileTokens - 1) / pattern.TileTokens
	long := s.dense.rate.y[len(s.dense.rate.y)-1]
	var tiles, busy, floor float64
	for _, g := range groups {
		if g.Kind != kind {
			continue
		}
		tiles += g.Heads * float64(rows)
		each := g.Heads / s.dense.heads * s.dense.flops / long
		gathered := g.Gathered(rows*pattern.TileTokens, span.Prefix)
		busy += each * (g.Pairs(rows*pattern.TileTokens, span.Prefix) - gathered) / cost.efficiency
		if gathered > 0 {
			busy += each * gathered / cost.columns
		}
		_, physics := s.work(&g, span)
		floor += physics
	}
	waves := math.Ceil(tiles/s.dense.sms) * s.dense.sms
	return math.Max(waves*(cost.tile+busy/tiles), floor)
}

// index returns the time to find the keys of a chunk.
func (s *sparsePrefill) index(
	cost sparseCost, kind pattern.Kind, groups []pattern.Group, span sim.Span) (t float64) {
	least, share := 0.0, s.dense.kvHeads/s.dense.heads
	for _, g := range groups {
		if g.Kind != kind {
			continue
		}
		scanned := g.Scanned(span.Query, span.Prefix, s.dim, share)
		t += g.Heads*(scanned/math.Min(cost.scan, s.hbm)+g.Listed(span.Query, span.Prefix)/cost.choice) +
			g.Steps(span.Query, span.Prefix, g.Heads)*cost.step
		least += g.Heads * scanned / s.hbm
	}
	return math.Max(t, least)
}

// checkSparseRows checks that each pattern occurs once and that each row is complete, published or
// calibrated.
func checkSparseRows(rows []SparseRow) error {
	const name = "sparse_prefill"
	seen := map[pattern.Kind]bool{}
	for i, r := range rows {
		path, kind := fmt.Sprintf("%s[%d]", name, i), pattern.Kind(r.Pattern)
		switch {
		case !slices.Contains(pattern.Kinds(), kind):
			return wrong(path+".pattern", "unknown %q; want %s", r.Pattern, pattern.Kinds())
		case seen[kind]:
			return wrong(path+".pattern", "a second row of %s", kind)
		}
		if err := r.check(path, kind.Indexed()); err != nil {
			return err
		}
		seen[kind] = true
	}
	return nil
}

func (r *SparseRow) check(path string, indexed bool) error {
	calibrated := r.Tile.Set()
	for _, f := range []struct {
		key  string
		got  Figure
		want bool
	}{
		{"index", r.Index, indexed && !calibrated},
		{"index_launch", r.IndexLaunch, indexed && calibrated},
		{"scan", r.Scan, indexed && calibrated}, {"choice", r.Choice, indexed && calibrated},
		{"step", r.Step, indexed && calibrated},
		{"columns", r.Columns, calibrated && r.Pattern == string(pattern.VerticalSlash)},
	} {
		if f.got.Set() != f.want {
			return wrong(path+"."+f.key, "want index of vertical-slash and block-sparse, whose keys are "+
				"found for each prompt; or, with a tile, index_launch, scan, choice and step of these, and "+
				"columns of vertical-slash")
		}
	}
	return nil
}
