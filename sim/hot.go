package sim

import (
	"fmt"

	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/prefix"
)

// Values of Spec.HotRelease; an empty one is ReleasePrefilled.
const (
	ReleasePrefilled = "prefilled"
	ReleaseShort     = "short"
)

// HotReleases names the values of Spec.HotRelease.
func HotReleases() []string { return []string{ReleasePrefilled, ReleaseShort} }

// Hot reports whether requests have hot buffers (HiSparse) instead of one shared cache.
func (s *Spec) Hot() bool { return s.Offload.HotBuffer > 0 }

// HotBlocks returns the size of a hot buffer in blocks.
func (s *Spec) HotBlocks() int { return s.Offload.HotBuffer / s.BlockTokens }

// NoHot returns why a system cannot have hot buffers, or "".
func (s *Spec) NoHot() string {
	switch {
	case !s.Offload.On || !s.Sparse():
		return "needs offload.on = true and selection.on = true: what a buffer lacks is in DRAM"
	case s.Selection.Per == PerQueryHead || s.Selection.Recording != "" || s.Progressive() ||
		s.Selection.Policy == "infinigen" || s.Selection.Policy == "streaming":
		return "is simulated with selections of a fixed size: a top-k algorithm, nothing recorded"
	case s.Selection.DenseLayers > 0:
		return fmt.Sprintf("holds no layer whole: selection.dense_layers = %d", s.Selection.DenseLayers)
	case s.HotBlocks() < SelectedBlocks(s):
		return fmt.Sprintf("must hold what a step selects, selection.budget_tokens = %d, in blocks of %d",
			s.Selection.BudgetTokens, s.BlockTokens)
	case s.Prefill.Split != "plain" && s.Prefill.Split != "chunked":
		return fmt.Sprintf("has prompts in HBM until they are prefilled: prefill.split = %q",
			s.Prefill.Split)
	case s.CachesPrefixes() || s.PrefixCache.Attend == PrefixSelected:
		return "is simulated without a prefix cache"
	case s.Offload.BatchControl:
		return "limits HBM by itself: offload.batch_control = true"
	}
	return ""
}

// hotBuffers holds the hot buffers of one server's requests and the counts of the current step.
type hotBuffers struct {
	memory     *kv.Hot
	slots      int // candidates per buffer, without sinks and window
	kept       int // sinks and window
	loaded     int64
	longest    int64 // largest part of loaded that one request has
	given      int64 // loads of the step already assigned to layers
	selections int64 // selected blocks in the sampled groups
	swapped    int   // decodes of the step whose selections are looked up in buffers
}

// newHot returns the memory of a system with hot buffers.
func (s *Server) newHot() (*hotBuffers, error) {
	spec, geo := &s.Spec, &s.Geometry
	if why := spec.NoHot(); why != "" {
		return nil, fmt.Errorf("sim: a hot buffer %s", why)
	}
	if s.Addressed && s.Swapped == nil || s.RecordTo != nil || s.RecallProxy {
		return nil, fmt.Errorf("sim: hot buffers are simulated by counts: no device that computes but " +
			"swaps by itself, no recording, no accuracy proxy")
	}
	dram := spec.DRAMGiB * (1 << 30)
	if spec.Offload.HostPoolRatio > 0 {
		dram = min(dram, spec.Offload.HostPoolRatio*float64(s.HBMBytes))
	}
	groups := int64(geo.Groups())
	h := &hotBuffers{kept: spec.Selection.SinkBlocks + spec.Selection.RecentBlocks}
	h.slots = spec.HotBlocks() - h.kept
	h.memory = kv.NewHot(kv.HotConfig{DRAM: int64(dram), HBM: s.HBMBytes,
		BlockTokens: geo.BlockTokens, Block: geo.BlockBytes * groups, Meta: geo.MetaBytes * groups,
		Slots: int64(spec.HotBlocks()), Keep: spec.Offload.HotRelease == ReleaseShort,
		Watermark: spec.Watermark})
	return h, nil
}

// chooseHot adds a decode's selected blocks and its buffer misses to the step.
func (s *Server) chooseHot(r *request) {
	h, blocks := s.hot, s.Geometry.Blocks(r.Context())
	h.selections += int64(min(blocks, s.sel.budget) * len(s.sel.sample.Groups))
	if h.memory.Buffered(&r.Grant) {
		h.swapped++
	}
	if h.memory.Whole(&r.Grant) || r.grid < 0 {
		if r.filled = 0; blocks <= s.Spec.HotBlocks() { // all blocks are in the buffer
			r.filled = dsa.Settled
		}
		return
	}
	before := h.loaded
	s.lookUp(r, h.memory.Eighths(&r.Grant))
	for g, c := range r.cursors {
		h.loaded += int64(r.reuses[g].Misses((int(c.Phase)+r.steps)%s.Library.Steps(), r.filled))
	}
	h.longest = max(h.longest, h.loaded-before)
	if r.filled < dsa.Settled {
		r.filled++
	}
}

// lookUp sets the share of the context, in eighths, that a request's buffers cache. Newly covered
// blocks are not in the buffers yet, so their selection counts as a load.
func (s *Server) lookUp(r *request, eighths int) {
	if len(r.reuses) > 0 && r.grid == r.reused && eighths == r.served {
		return
	}
	h, more := s.hot, r.grid == r.reused && r.filled > 0
	for g, c := range r.cursors {
		step := (int(c.Phase) + r.steps) % s.Library.Steps()
		reuse := s.Library.Reuse(c, r.grid, h.slots, eighths)
		if g == len(r.reuses) {
			r.reuses = append(r.reuses, reuse)
			continue
		}
		if more {
			h.loaded += int64(max(0, reuse.Misses(step, 0)-r.reuses[g].Misses(step, 0)))
		}
		r.reuses[g] = reuse
	}
	r.reused, r.served = r.grid, eighths
}

// moveHot makes the device load a layer's share of the buffer misses and save the blocks that the
// layer's prefills filled. The kernel that loads also saves the rows of new tokens.
func (s *Server) moveHot(layer int) error {
	h, st := s.hot, &s.step
	upTo := s.scaled(h.loaded) * int64(layer+1) / int64(s.Model.Layers)
	st.moves.Loads, h.given = upTo-h.given, upTo
	st.moves.Longest = min(st.moves.Loads, s.scaled(h.longest)/int64(s.Model.Layers))
	_, all := s.closedIn(layer)
	heads := int64(s.Geometry.KVHeads)
	st.moves.Saves = int64(all-st.closing) * heads
	st.rec.Saved += int64(all) * heads
	return s.path.move(&st.moves)
}

// scaled extrapolates a count over the sampled groups to the whole model.
func (s *Server) scaled(n int64) int64 {
	return n * int64(s.Geometry.Groups()) / int64(len(s.sel.sample.Groups))
}

// finishHot records the counts of a step.
func (s *Server) finishHot() {
	h, rec := s.hot, &s.step.rec
	if s.Swapped != nil { // convert tokens to blocks
		selected, loaded := s.Swapped()
		block := int64(s.Geometry.BlockTokens)
		rec.Selected, rec.Loaded = (selected+block-1)/block, (loaded+block-1)/block
		return
	}
	rec.Selected, rec.Loaded = s.scaled(h.selections), h.given
}

// grants yields the grants of all requests.
func (s *Server) grants(yield func(*prefix.Grant) bool) {
	for r := range s.requests {
		if !yield(&r.Grant) {
			return
		}
	}
}
