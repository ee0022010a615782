package sim

import (
	"fmt"

	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/prefix"
	"github.com/sparseserve/sparseserve/sim/sched"
)

// memory is the server's memory for KV: of HBM, or of DRAM with offloading.
type memory interface {
	sched.Memory
	Fits(tokens int) bool
	Used() int64 // blocks
	Total() int64
	Tokens(blocks int64) int64
}

// Values of Spec.PrefixCache.
const (
	PrefixOff  = "off"
	PrefixVLLM = "vllm"
)

// PrefixCaches names the values of Spec.PrefixCache.
func PrefixCaches() []string { return []string{PrefixOff, PrefixVLLM} }

// CachesPrefixes says whether requests find the KV of earlier ones.
func (s *Spec) CachesPrefixes() bool { return s.PrefixCache != "" && s.PrefixCache != PrefixOff }

// NoPrefixCache says why a system cannot have a prefix cache, or nothing.
func (s *Spec) NoPrefixCache() string {
	switch {
	case s.Offload:
		return "is simulated where all KV is in HBM: offload = true"
	case s.Prefill != "plain" && s.Prefill != "chunked":
		return fmt.Sprintf("needs prefills that compute all layers of a token at once: prefill = %q",
			s.Prefill)
	}
	return ""
}

// newMemory returns memory of so many blocks.
func (s *Server) newMemory(blocks int64) error {
	spec := &s.Spec
	if !spec.CachesPrefixes() {
		s.memory = kv.NewBudget(blocks, s.Geometry.BlockTokens, spec.Watermark)
		return nil
	}
	if why := spec.NoPrefixCache(); why != "" {
		return fmt.Errorf("sim: a prefix cache %s", why)
	}
	s.prefixes = prefix.NewPool(blocks, s.Geometry.BlockTokens, spec.Watermark)
	s.memory = s.prefixes
	return nil
}

// share prepares what a request that arrives can have from others. With prefixes shared, that is
// known when it is scheduled; else its trace says it.
func (s *Server) share(r *request) {
	if s.prefixes == nil {
		r.Grant.Cached = s.prefixHit(r.arrival.Cached, r.prompt)
		r.StartAfter(r.Grant.Cached)
		return
	}
	a := &r.arrival
	r.table.Reset(a.Content, a.Prompt, r.prompt, r.Output, uint64(r.ID))
	r.Grant.Table = &r.table
}

// prefixHit is how many tokens of a prompt a request has from the prefix cache that its trace
// speaks of: whole blocks, and never the whole prompt, whose last token is computed for its
// logits. With offloading or layer-segmented prefill there is none.
func (s *Server) prefixHit(cached, prompt int) int {
	if s.cache != nil || s.sched.Planner().Segmented() {
		return 0
	}
	block := s.Geometry.BlockTokens
	return min(cached, prompt-1) / block * block
}

// tables yields those of all requests.
func (s *Server) tables(yield func(*prefix.Table) bool) {
	for _, r := range s.requests {
		if !yield(&r.table) {
			return
		}
	}
}

// begun notes what a prefill that begins has from the prefix cache.
func (s *Server) begun(r *request, first bool) {
	if first {
		r.hit = r.Hit
	}
	if s.prefixes == nil {
		return
	}
	s.weigh(r)
	p := &s.step.rec.Prefix
	p.Asked += int64(r.Target)
	p.Hit += int64(r.Hit)
}

// PrefixUse is what requests had from the prefix cache.
type PrefixUse struct {
	Asked int64 // tokens of prefills that began
	Hit   int64 // of these, that were cached
	// Evicted blocks lost their content to others.
	Evicted int64
}

func (u *PrefixUse) add(o *PrefixUse) {
	u.Asked += o.Asked
	u.Hit += o.Hit
	u.Evicted += o.Evicted
}

// PrefixStats is what a prefix cache did in a run. Tokens of a prefill that begins again after a
// preemption count again.
type PrefixStats struct {
	PromptTokens  int64   `json:"prompt_tokens"` // of prefills that began
	HitTokens     int64   `json:"hit_tokens"`
	HitShare      float64 `json:"hit_share"`      // of them
	BlocksEvicted int64   `json:"blocks_evicted"` // that lost their content
}

func (u *PrefixUse) stats() *PrefixStats {
	if u.Asked == 0 {
		return nil
	}
	return &PrefixStats{PromptTokens: u.Asked, HitTokens: u.Hit, BlocksEvicted: u.Evicted,
		HitShare: float64(u.Hit) / float64(u.Asked)}
}
