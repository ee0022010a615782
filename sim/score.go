package sim

import (
	"math"

	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/sim/kv"
)

// BlockScores returns the scores for eviction by score: a block's criticality above the lowest
// that was selected, at the newest step in which its request selected from the group (before
// the first, at the step before). Blocks of one group are thus ordered by criticality, as in
// ArkVale, and those of different heads and requests by their distance from being selected.
//
// Sinks, window, dense layers and contexts within the budget are always selected: their scores
// are infinite.
func BlockScores(spec *Spec, geo kv.Geometry, sample []int32, lib *dsa.Library,
	seed uint64) kv.Score {
	x := &blockScores{spec: spec, geo: geo, sample: sample, lib: lib, seed: seed,
		critical: lib.Critical()}
	return x.score
}

type blockScores struct {
	spec     *Spec
	geo      kv.Geometry
	sample   []int32
	lib      *dsa.Library
	seed     uint64
	critical func(c dsa.Cursor, n, b, steps int) float32
	places   []scorePlace // by handle
}

// scorePlace is where the groups of one request are in the score process.
type scorePlace struct {
	owner   uint32
	request int
	groups  []scoreGroup // of the sample
	layers  []*dsa.Layer // of a policy that decides for whole layers, as they are asked for
}

type scoreGroup struct {
	cursor     dsa.Cursor
	steps      int     // for which lowest holds, -1 none
	candidates int     // and their number
	lowest     float32 // criticality selected; -Inf where all are
}

// always is the score of what is selected in any case.
var always = float32(math.Inf(1))

func (x *blockScores) score(s *kv.Seq, g, b int) float32 {
	steps, blocks := s.Seen(g)
	if steps == 0 {
		blocks = s.Blocks()
	}
	if b < x.spec.Selection.SinkBlocks || b >= blocks-x.spec.Selection.RecentBlocks ||
		int(x.sample[g])/x.geo.KVHeads < x.spec.Selection.DenseLayers {
		return always
	}
	p := x.place(s)
	at := &p.groups[g]
	if n := blocks - x.spec.Selection.SinkBlocks - x.spec.Selection.RecentBlocks; at.steps != steps ||
		at.candidates != n {
		at.steps, at.candidates, at.lowest = steps, n, x.lowest(p, g, n, steps)
	}
	return x.critical(at.cursor, at.candidates, b-x.spec.Selection.SinkBlocks, steps) - at.lowest
}

// place finds a request's groups in the score process.
func (x *blockScores) place(s *kv.Seq) *scorePlace {
	for int(s.Handle()) >= len(x.places) {
		x.places = append(x.places, scorePlace{})
	}
	p := &x.places[s.Handle()]
	if len(p.groups) > 0 && p.owner == s.Owner() {
		return p
	}
	p.owner, p.request, p.groups, p.layers = s.Owner(), s.Request, p.groups[:0], p.layers[:0]
	for _, at := range x.sample {
		layer, head := int(at)/x.geo.KVHeads, int(at)%x.geo.KVHeads
		p.groups = append(p.groups,
			scoreGroup{cursor: x.lib.CursorOf(x.seed, s.Request, layer, head, x.geo.KVHeads), steps: -1})
	}
	return p
}

// lowest returns the lowest criticality that a group selects of n candidates.
func (x *blockScores) lowest(p *scorePlace, g, n, steps int) float32 {
	grid, c := x.lib.Grid(n), p.groups[g].cursor
	if grid < 0 {
		return -always
	}
	var selected []uint16
	if x.lib.ByLayer() {
		layer, head := p.layer(x, int(x.sample[g])/x.geo.KVHeads), int(x.sample[g])%x.geo.KVHeads
		_, picked := layer.Decide(grid, steps)
		selected = layer.Order(head, picked)
	} else {
		selected = x.lib.Cycle(c, grid).Next((int(c.Phase) + steps) % x.lib.Steps())
	}
	lowest := always
	for _, b := range selected {
		lowest = min(lowest, x.critical(c, n, int(b), steps))
	}
	return lowest
}

// layer returns a layer of the request in the score process.
func (p *scorePlace) layer(x *blockScores, layer int) *dsa.Layer {
	for len(p.layers) <= layer {
		p.layers = append(p.layers, nil)
	}
	if p.layers[layer] == nil {
		p.layers[layer] = x.lib.Layer(x.seed, p.request, layer, x.geo.KVHeads)
	}
	return p.layers[layer]
}

// blockScores returns the scores that eviction goes by, nil where it does not.
func (s *Server) blockScores() kv.Score {
	if s.Spec.Offload.Eviction != kv.ByScore {
		return nil
	}
	return BlockScores(&s.Spec, s.Geometry, s.groups, s.Library, s.Seed)
}
