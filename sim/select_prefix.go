package sim

import (
	"errors"

	"github.com/sparseserve/sparseserve/sim/sched"
)

// checkPrefixes returns an error for settings of prefix loads and prefix selection that the system
// does not support.
func (c *Config) checkPrefixes() error {
	if c.Spec.PrefixCache.LoadWeight > 0 && (!c.Spec.Offload.On ||
		c.Spec.PrefixCache.Attend == PrefixSelected) {
		return errors.New("sim: only prefills with offloading that attend to all of a prefix load it " +
			"in their steps; set prefix_cache.load_weight = 0")
	}
	if c.Spec.PrefixCache.Attend != PrefixSelected {
		return nil
	}
	switch {
	case !c.Spec.Offload.On || !c.Spec.Sparse():
		return errors.New("sim: only sparse attention with offloading selects blocks of a prefix; set " +
			"prefix_cache.attend = \"dense\"")
	case c.DeviceSelects || c.Recording != nil || c.Addressed || c.RecordTo != nil || c.Trace != nil:
		return errors.New("sim: prefills select from a prefix where selections are drawn from the " +
			"score process, neither recorded nor computed; set prefix_cache.attend = \"dense\"")
	case c.Spec.SparsePrefill():
		return errors.New("sim: a sparse prefill has a selection of its own; set " +
			"prefix_cache.attend = \"dense\"")
	}
	return nil
}

// selectsPrefix reports whether a prefill attends to a selection of its cached prefix.
func (c *Config) selectsPrefix(r *sched.Request) bool {
	return r.Hit > 0 && c.Spec.PrefixCache.Attend == PrefixSelected
}

// hitBlocks returns the number of blocks in a request's prefix hit.
func (c *Config) hitBlocks(r *sched.Request) int { return r.Hit / c.Geometry.BlockTokens }

// span returns the attention span of a prefill in a layer.
func (s *selection) span(r *request, seg *sched.Segment, layer int) Span {
	span := Span{Query: seg.Tokens(), Prefix: seg.TokenFrom}
	if s.selectsPrefix(seg.Req) && !s.dense(layer) {
		span.Prefix += s.attendedPrefix(r, layer) - seg.Req.Hit
	}
	return span
}

// attendedPrefix returns the number of prefix tokens that a KV head of a prefill attends to in a
// layer. It is the mean if heads differ.
func (s *selection) attendedPrefix(r *request, layer int) int {
	if r.grid < 0 {
		return r.Hit
	}
	if s.fixed {
		return min(r.Hit, (s.Spec.Selection.SinkBlocks+Candidates(&s.Spec))*s.Geometry.BlockTokens)
	}
	heads, n := s.Geometry.KVHeads, 0
	for h := range heads {
		n += s.Spec.Selection.SinkBlocks + s.attends(r, layer*heads+h)
	}
	return min(r.Hit, n*s.Geometry.BlockTokens/heads)
}

// scoredOfPrefixes returns the number of prefix blocks that prefills score in a layer. Each chunk
// scores with one query per head, the mean of its queries.
func (s *selection) scoredOfPrefixes(batch *sched.Batch, layer int) (n int64) {
	for i := range batch.Prefills {
		if seg := &batch.Prefills[i]; seg.In(layer) && s.selectsPrefix(seg.Req) {
			n += int64(s.hitBlocks(seg.Req))
		}
	}
	return n
}
