package sim

import (
	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/sim/kv"
)

// selection is the blocks that the decodes of a server attend to. Its selector decides them where
// attention is sparse.
type selection struct {
	*Config
	selector
	policy dsa.Policy // of sparse attention
	fixed  bool       // the budget sets the size of a selection
	apart  bool       // the policy decides for each query head
	// blocks that a group selects, including sinks and window; an initial estimate if not fixed
	budget  int
	sample  kv.Sample    // (layer, KV head) groups that the cache simulates
	counted []int32      // groups with known selections: all if sizes differ by head
	named   bool         // a step needs the selected blocks, not only their number
	stopped func() error // returns why the run must end, or nil

	ends, lasts []int64 // by round: heads that end in it, and the blocks that they attend to in it
}

// selector decides which candidates the groups of a request select: a library of recorded cycles,
// the heads of each layer together, a recording, or a device.
type selector interface {
	// decide makes the groups select among the given number of candidates in the request's next step.
	decide(r *request, candidates int) error
	// pick adds the candidates of group g of the sample to a selection.
	pick(r *request, g int, sel *kv.Selection)
	// used returns the number of candidates that a counted group attends to.
	used(r *request, g int) int
	// alike returns the number of heads of a layer that attend to equally many candidates.
	alike() int
	// recall adds the share of attention that the selections cover, if it is known.
	recall(*request)
}

// newSelection returns the selection of a server. stopped returns why its run must end, or nil.
func newSelection(cfg *Config, stopped func() error) (*selection, error) {
	spec := &cfg.Spec
	s := &selection{Config: cfg, sample: kv.FullSample(cfg.Geometry), stopped: stopped}
	all := s.sample.Groups
	if spec.Simulation.Heads == "sampled" {
		s.sample = kv.HashSample(cfg.Geometry, spec.Simulation.Groups, cfg.Seed)
	}
	s.counted = s.sample.Groups
	if !spec.Sparse() {
		return s, s.check()
	}
	policy, algorithm, err := spec.Policy(cfg.Model.Queries)
	if err != nil {
		return nil, err
	}
	_, s.apart = policy.(dsa.Union)
	s.policy, s.fixed, s.budget = policy, algorithm.Fixed && !s.apart, SelectedBlocks(spec)
	if !s.fixed {
		s.counted = all
	}
	s.named = spec.Offload.On || !s.fixed || s.Addressed || s.RecordTo != nil || s.RecallProxy
	switch {
	case s.Recording != nil:
		s.selector = recorded{newest{s}}
	case s.DeviceSelects:
		s.selector = onDevice{newest{s}}
	case s.Library.ByLayer():
		s.selector = layered{s}
	default:
		s.selector = cyclic{s}
	}
	return s, s.check()
}

// advance advances a decode's selections by one step.
func (s *selection) advance(r *request) error {
	if err := s.among(r, s.candidates(r), r.moved); err != nil {
		return err
	}
	if s.RecallProxy {
		s.recall(r)
	}
	return nil
}

// among makes the groups of a request select among the given number of candidates, the given number
// of positions after the last time.
func (s *selection) among(r *request, candidates, moved int) error {
	r.lastGrid = r.grid
	if r.steps == 0 {
		r.lastGrid, moved = -2, 1 // no previous step
	}
	r.steps += moved
	return s.decide(r, candidates)
}

// candidates returns the number of blocks of a decode between sinks and window.
func (s *selection) candidates(r *request) int {
	return max(0, s.Geometry.Blocks(r.Context())-s.kept())
}

// kept returns the number of blocks that are always selected: sinks and window.
func (s *selection) kept() int {
	return s.Spec.Selection.SinkBlocks + s.Spec.Selection.RecentBlocks
}

// of sets sel to the blocks that group g of the sample selects in r's current step.
func (s *selection) of(r *request, g int, dense bool, sel *kv.Selection) {
	sel.Follows = false
	if sel.All = dense || r.grid < 0; sel.All {
		return
	}
	sel.Sinks = s.Spec.Selection.SinkBlocks
	sel.Tail = s.Geometry.Blocks(r.Context()) - s.Spec.Selection.RecentBlocks
	s.pick(r, g, sel)
}

// row returns the place of group g of the sample among the counted groups.
func (s *selection) row(g int) int {
	if len(s.counted) > len(s.sample.Groups) {
		return int(s.sample.Groups[g])
	}
	return g
}

// dense reports whether decodes of a layer attend to every block.
func (s *selection) dense(layer int) bool {
	return !s.Spec.Sparse() || layer < s.Spec.Selection.DenseLayers
}

// attends returns the number of candidates that a counted group attends to.
func (s *selection) attends(r *request, g int) int {
	if r.grid < 0 {
		return s.candidates(r)
	}
	return s.used(r, g)
}

// tokens returns the number of tokens that one head reads: the whole context, or the budget with a
// partly filled open block.
func (s *selection) tokens(context int) int64 {
	blocks := s.Geometry.Blocks(context)
	if blocks <= s.budget {
		return int64(context)
	}
	open := context - (blocks-1)*s.Geometry.BlockTokens
	return int64((s.budget-1)*s.Geometry.BlockTokens + open)
}

// bytes returns the bytes that one decode step selects over the whole model.
func (s *selection) bytes(context int) int64 {
	blocks := s.Geometry.Blocks(context)
	if !s.Spec.Sparse() {
		return int64(blocks*s.Model.Layers) * s.layerOfBlocks()
	}
	dense := min(s.Spec.Selection.DenseLayers, s.Model.Layers)
	sparse := s.Model.Layers - dense
	return int64(blocks*dense+min(blocks, s.budget)*sparse) * s.layerOfBlocks()
}

// record records the selections of a layer's decodes, except where all blocks are selected.
func (s *selection) record(decodes []*request, layer int) {
	heads, sel := s.Geometry.KVHeads, &kv.Selection{}
	for _, r := range decodes {
		if r.grid < 0 {
			continue
		}
		if layer == s.Spec.Selection.DenseLayers {
			s.RecordTo.Step(r.ID, r.Generated)
		}
		for h := range heads {
			s.of(r, layer*heads+h, false, sel)
			s.RecordTo.Add(r.ID, &sel.Picks)
		}
	}
}
