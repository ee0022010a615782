package sim

import (
	"math"

	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/sim/kv"
)

// BlockScores returns the scores for eviction by score: a block's criticality minus the lowest
// selected criticality, at the newest step in which its request selected from the group, or before
// the first selection at the previous step. This orders blocks of one group by criticality, as in
// ArkVale, and blocks of different heads and requests by their distance from being selected.
//
// Sinks, window, dense layers and contexts within the budget are always selected. Their scores are
// infinite.
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
	places   []scorePlace // by sequence handle
}

// scorePlace holds the positions of one request's groups in the score process.
type scorePlace struct {
	owner   uint32
	request int
	groups  []scoreGroup // groups of the sample
	layers  []*dsa.Layer // layers, created on demand, for policies that decide per layer
}

type scoreGroup struct {
	cursor     dsa.Cursor
	steps      int     // step for which lowest is valid; -1: none
	candidates int     // number of candidates at that step
	lowest     float32 // lowest selected criticality; -Inf if all are selected
}

// always is the score of blocks that are always selected.
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

// place returns the positions of a request's groups in the score process.
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

// lowest returns the lowest criticality among the candidates that a group selects out of n.
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

// scores returns the scores used by eviction, or nil if eviction does not use scores.
func (s *selection) scores() kv.Score {
	if s.Spec.Offload.Eviction != kv.ByScore {
		return nil
	}
	return BlockScores(&s.Spec, s.Geometry, s.sample.Groups, s.Library, s.Seed)
}
