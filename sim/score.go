package sim

import (
	"math"

	"sparseserve/sim/dsa"
	"sparseserve/sim/kv"
)

// BlockScores returns the scores that eviction goes by: the criticality that the
// library's policy saw of a block at the newest step in which its request
// selected from the group. Before the first such step it is that of the step
// before. Sinks, window and dense layers are selected whatever their scores, so
// theirs are infinite.
//
// Scores of different heads and requests are compared with each other: in the
// score process they have one law.
func BlockScores(spec *Spec, geo kv.Geometry, sample []int32, lib *dsa.Library, seed uint64) kv.Score {
	type place struct {
		owner   uint32
		cursors []dsa.Cursor // by group of the sample
	}
	var places []place // by handle
	critical := lib.Critical()
	always := float32(math.Inf(1))
	return func(s *kv.Seq, g, b int) float32 {
		steps, blocks := s.Seen(g)
		window := steps > 0 && b >= blocks-spec.WindowBlocks
		if b < spec.SinkBlocks || window || int(sample[g])/geo.KVHeads < spec.DenseLayers {
			return always
		}
		for int(s.Handle()) >= len(places) {
			places = append(places, place{})
		}
		p := &places[s.Handle()]
		if len(p.cursors) == 0 || p.owner != s.Owner() {
			p.owner, p.cursors = s.Owner(), p.cursors[:0]
			for _, at := range sample {
				p.cursors = append(p.cursors, lib.CursorOf(seed, s.Request, int(at)/geo.KVHeads, int(at)%geo.KVHeads, geo.KVHeads))
			}
		}
		return critical(p.cursors[g], blocks-spec.SinkBlocks-spec.WindowBlocks, b-spec.SinkBlocks, steps)
	}
}

// blockScores returns the scores that eviction goes by, nil where it does not.
func (s *Server) blockScores() kv.Score {
	if s.Spec.Eviction != kv.ByScore {
		return nil
	}
	return BlockScores(&s.Spec, s.Geometry, s.groups, s.Library, s.Seed)
}
