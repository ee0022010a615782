package sim

import (
	"fmt"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/sim/memory"
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
		return "needs offload.on = true and selection.on = true: the other tokens are in DRAM"
	case s.Selection.Per == PerQueryHead || s.Selection.Recording != "" ||
		!s.Algorithm().Fixed:
		return "is simulated with selections of a fixed size: a top-k algorithm, nothing recorded"
	case s.Selection.DenseLayers > 0:
		return fmt.Sprintf("holds no layer whole: selection.dense_layers = %d", s.Selection.DenseLayers)
	case s.HotBlocks() < SelectedBlocks(s):
		return fmt.Sprintf("must hold what a step selects, selection.budget_tokens = %d, in blocks of %d",
			s.Selection.BudgetTokens, s.BlockTokens)
	case s.Segmented():
		return fmt.Sprintf("has prompts in HBM until they are prefilled: prefill.split = %q",
			s.Prefill.Split)
	case s.PrefixCache.Attend == PrefixSelected:
		return "is loaded after prompts that attend to all of a cached prefix: prefix_cache.attend = " +
			`"selected"`
	case s.Offload.BatchControl:
		return "limits HBM by itself: offload.batch_control = true"
	}
	return ""
}

// buffered is memory with hot buffers: DRAM holds the KV of all requests, and HBM a buffer of each
// decoding request. With a prefix cache DRAM also holds the KV and the metadata of ended requests'
// texts. A prompt loads all that it hits, because its tokens select from all of it.
type buffered struct {
	resident
	hot   *memory.Hot
	tiers PrefixDevice // saves metadata of cached blocks; nil without a prefix cache
	slots int          // candidates per buffer, without sinks and window
	swaps
}

// swaps is what the buffers of one step look up.
type swaps struct {
	loaded     int64
	longest    int64 // largest part of loaded that one request has
	selections int64 // selected blocks in the sampled groups
	swapped    int   // decodes of the step whose selections are looked up in buffers
}

func newBuffered(m resident) (*buffered, error) {
	spec, geo := &m.Spec, &m.Geometry
	if why := spec.NoHot(); why != "" {
		return nil, fmt.Errorf("sim: a hot buffer %s", why)
	}
	if m.Addressed && m.Swapped == nil || m.RecordTo != nil || m.RecallProxy {
		return nil, fmt.Errorf("sim: hot buffers are simulated by counts: no device that computes but " +
			"swaps by itself, no recording, no accuracy proxy")
	}
	b := &buffered{resident: m, slots: spec.HotBlocks() - m.sel.kept()}
	if m.pool != nil {
		if b.tiers, _ = m.Device.(PrefixDevice); b.tiers == nil || m.Addressed {
			return nil, fmt.Errorf("sim: hot buffers with a prefix cache need a modelled device: %T",
				m.Device)
		}
	}
	groups := int64(geo.Groups())
	b.hot = memory.NewHot(memory.HotConfig{HBM: m.HBMBytes, Block: geo.BlockBytes * groups,
		Meta: geo.MetaBytes * groups, Slots: int64(spec.HotBlocks()),
		Keep: spec.Offload.HotRelease == ReleaseShort}, m.Memory.(*memory.Pool))
	b.Memory = b.hot
	return b, nil
}

func (b *buffered) hbmUsed() int64 {
	used, _ := b.hot.HBM()
	return used
}

func (b *buffered) decodeBytes(context int) int64 {
	return int64(min(b.Geometry.Blocks(context), b.Spec.HotBlocks())*b.Model.Layers) *
		b.layerOfBlocks()
}

func (b *buffered) workingSet(r *request) int64 { return b.decodeBytes(r.Context()) }

func (b *buffered) prefilled(r *request) error {
	b.hot.Settle(r.Grant)
	return nil
}

func (b *buffered) drop(r *request) { r.filled = 0 }

func (b *buffered) begin() error {
	b.swaps = swaps{}
	for i, r := range b.st.prefills {
		if b.pool != nil && b.st.batch.Prefills[i].TokenFrom == r.Hit {
			l := &b.st.meta.Prefix
			l.Bytes, l.ByLayer = l.Bytes+int64(b.hitBlocks(r.Request))*b.block, true
		}
	}
	for _, r := range b.st.decodes {
		if b.Swapped != nil {
			b.swapped++
		} else {
			b.choose(r)
		}
	}
	b.st.meta.DRAMBytes = b.Used() * b.block
	return nil
}

func (b *buffered) open(int) { b.st.work.Swapped = b.swapped * (1 + b.Spec.Speculation.Tokens) }

// choose adds a decode's selected blocks and its buffer misses to the step. Each draft has a
// selection of its own. The draft of a position selects what the token there will select, so a step
// misses only at positions that the steps before did not reach.
func (b *buffered) choose(r *request) {
	drafts := b.Spec.Speculation.Tokens
	blocks := b.Geometry.Blocks(r.Context() + drafts)
	b.selections += int64(min(blocks, b.sel.budget) * len(b.sel.sample.Groups) * (1 + drafts))
	if b.hot.Buffered(r.Grant) {
		b.swapped++
	}
	if b.hot.Whole(r.Grant) || r.grid < 0 {
		if r.filled = 0; blocks <= b.Spec.HotBlocks() { // all blocks are in the buffer
			r.filled = dsa.Settled
		}
		return
	}
	before := b.loaded
	b.lookUp(r, b.hot.Eighths(r.Grant))
	last := r.steps + drafts
	from := last - r.moved + 1
	if r.filled == 0 {
		from = r.steps
	}
	for at := from; at <= last; at++ {
		for g, c := range r.cursors {
			b.loaded += int64(r.reuses[g].Misses((int(c.Phase)+at)%b.Library.Steps(), r.filled))
		}
		if r.filled < dsa.Settled {
			r.filled++
		}
	}
	b.longest = max(b.longest, b.loaded-before)
}

// lookUp sets the share of the context, in eighths, that a request's buffers cache. Newly covered
// blocks are not in the buffers yet, so their selection counts as a load.
func (b *buffered) lookUp(r *request, eighths int) {
	if len(r.reuses) > 0 && r.grid == r.reused && eighths == r.served {
		return
	}
	more := r.grid == r.reused && r.filled > 0
	for g, c := range r.cursors {
		step := (int(c.Phase) + r.steps) % b.Library.Steps()
		reuse := b.Library.Reuse(c, r.grid, b.slots, eighths)
		if g == len(r.reuses) {
			r.reuses = append(r.reuses, reuse)
			continue
		}
		if more {
			b.loaded += int64(max(0, reuse.Misses(step, 0)-r.reuses[g].Misses(step, 0)))
		}
		r.reuses[g] = reuse
	}
	r.reused, r.served = r.grid, eighths
}

// move makes the device load a layer's share of the buffer misses and save the blocks that the
// layer's prefills filled. The kernel that loads also saves the rows of new tokens.
func (b *buffered) move(layer int) error {
	st := b.st
	st.moves.Loads = share(b.scaled(b.loaded), layer, b.Model.Layers)
	st.moves.Longest = min(st.moves.Loads, b.scaled(b.longest)/int64(b.Model.Layers))
	all := st.closedIn(layer, b.Geometry.BlockTokens)
	heads := int64(b.Geometry.KVHeads)
	st.moves.Saves = int64(all-st.closing) * heads
	st.rec.Saved += int64(all) * heads
	return b.Device.Move(&st.moves)
}

// scaled extrapolates a count over the sampled groups to the whole model.
func (b *buffered) scaled(n int64) int64 {
	return n * int64(b.Geometry.Groups()) / int64(len(b.sel.sample.Groups))
}

func (b *buffered) end(now des.Time) {
	b.share(now)
	rec := &b.st.rec
	if b.Swapped != nil { // convert tokens to blocks
		selected, loaded := b.Swapped()
		block := int64(b.Geometry.BlockTokens)
		rec.Selected, rec.Loaded = (selected+block-1)/block, (loaded+block-1)/block
		return
	}
	rec.Selected, rec.Loaded = b.scaled(b.selections), b.scaled(b.loaded)
}

// share saves the metadata of the blocks that the step fills. When it and the KV are in DRAM, later
// requests can share the blocks.
func (b *buffered) share(now des.Time) {
	if b.pool == nil {
		return
	}
	st, size, filled := b.st, b.Geometry.BlockTokens, 0
	save := func(r *request, from, to int) {
		if to/size > from/size {
			b.pool.Save(r.Grant, to/size, st.meta.Index)
			filled += to/size - from/size
		}
	}
	for _, r := range st.decodes {
		save(r, r.Context()-1, r.Context()-1+r.gives)
	}
	for i, r := range st.prefills {
		seg := &st.batch.Prefills[i]
		save(r, seg.TokenFrom, seg.TokenTo)
	}
	if filled > 0 {
		meta := int64(filled*b.Geometry.Groups()) * b.Geometry.MetaBytes
		done, _ := b.tiers.SavePrefix(now+st.rec.Timing.Elapsed, meta, 0)
		b.schedule(done, saveDone, st.meta.Index)
	}
}

func (b *buffered) saved(step int64) error {
	if b.pool != nil {
		b.pool.Saved(step)
	}
	return nil
}
