package live

import (
	"github.com/sparseserve/sparseserve/cuda/weights"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/kv"
)

// warm runs a generated request through every kernel and engine, and the linears at every number of
// tokens that steps use (padded). Kernels are then loaded, cuBLAS's algorithms chosen and buffers
// grown before the first counted step. The cache is empty before and after.
func (d *Device) warm() error {
	size := d.geo.BlockTokens
	prompt := 3*size + 5
	groups := d.geo.Groups()
	if blocks := int64(d.geo.Blocks(prompt+2) * groups); blocks*d.geo.BlockBytes > d.cfg.KVBytes/2 {
		return nil // the cache is too small
	}
	quiet := d.cfg
	d.cfg.Finished, d.cfg.Logits, d.cfg.Prompt = nil, nil, nil
	d.cfg.Selects, d.cfg.Chosen, d.cfg.Attended, d.cfg.Listed = false, nil, nil, nil
	d.cfg.Projected, d.cfg.ChosenTokens = nil, nil
	w := warmUp{d: d, prompt: prompt, blocks: d.geo.Blocks(prompt + 2)}
	if err := w.run(); err != nil {
		return err
	}
	d.cfg = quiet
	d.counters, d.stage.Uploads, d.stage.UploadBytes = Counters{}, 0, 0
	info, err := d.m.Device()
	if err != nil {
		return err
	}
	d.warmLinears(info.DriverVersion > 0)
	d.sync()
	return d.queue.Err()
}

// warmUp is a request that runs without a server: its blocks are in the cache's first slots.
type warmUp struct {
	d              *Device
	prompt, blocks int
	index          int64
}

func (w *warmUp) run() error {
	d := w.d
	segmented := d.offload && d.cfg.Spec.Segmented()
	bounds := []int{0, d.geo.BlockTokens + 3, w.prompt} // the second chunk has a prefix
	if segmented {
		bounds = []int{0, w.prompt}
	}
	for i := range bounds[1:] {
		row := w.row(bounds[i], bounds[i+1])
		row.Segmented, row.Emits = segmented, bounds[i+1] == w.prompt
		if err := w.step(row, 0); err != nil {
			return err
		}
	}
	for i := range 2 {
		row := w.row(w.prompt+i, w.prompt+i+1)
		row.Decode, row.Emits = true, true
		loads := 1
		if i == 0 && !segmented {
			loads = 0
		} else if i == 0 {
			loads = w.prompt / d.geo.BlockTokens // none of them is in HBM
		}
		if err := w.step(row, loads); err != nil {
			return err
		}
	}
	if d.saver != nil {
		if _, err := d.saver.drain(); err != nil {
			return err
		}
	}
	d.drop(sim.Dropped{ID: warmID, Finished: true})
	return d.queue.Err()
}

const warmID = -1

func (w *warmUp) row(from, to int) sim.Row {
	seq := int32(-1)
	if w.d.offload {
		seq = 0
	}
	return sim.Row{ID: warmID, Seq: seq, Prompt: w.prompt, MaxTokens: w.prompt + 3, From: from,
		To: to, LayerTo: w.d.geo.Layers}
}

// step runs one row in all layers. The first loads blocks of each group come from DRAM.
func (w *warmUp) step(row sim.Row, loads int) error {
	d := w.d
	sampled := 0
	if row.Emits {
		sampled = 1
	}
	if err := d.Begin(&sim.Step{Index: w.index, Rows: []sim.Row{row}, Requests: 1,
		Sampled: sampled}); err != nil {
		return err
	}
	w.index++
	blocks := 0 // with slots
	if !row.Segmented {
		blocks = d.geo.Blocks(row.To)
	}
	for layer := range d.geo.Layers {
		work := &sim.Work{Tokens: row.To - row.From}
		if row.Decode {
			work.Decodes, work.Sparse = 1, d.sparse
			if d.offload || d.sparse {
				work.Lists = w.lists(layer, d.geo.Blocks(row.To))
			}
			if d.cfg.Spec.Progressive() {
				work.Rounds = []sim.Round{{Tokens: int64(row.To),
					Loads: int64(loads * d.geo.KVHeads)}}
			}
		} else {
			work.Prefill = []sim.Span{{Query: row.To - row.From, Prefix: row.From}}
			work.Tables = []sim.Table{w.table(layer, d.geo.Blocks(row.To), row.Segmented)}
		}
		if work.Sparse {
			_ = d.Score(layer, work)
		}
		if d.offload {
			_ = d.Move(w.moves(layer, loads, blocks))
		}
		_ = d.Compute(layer, work)
	}
	_, err := d.Finish() // the first failure of the step
	return err
}

func (w *warmUp) slot(layer, head, block int) int32 {
	return int32((layer*w.d.geo.KVHeads+head)*w.blocks + block)
}

func (w *warmUp) table(layer, blocks int, segmented bool) sim.Table {
	if !w.d.offload || segmented {
		return sim.Table{}
	}
	t := sim.Table{Blocks: blocks}
	for h := range w.d.geo.KVHeads {
		for b := range blocks {
			t.Slot = append(t.Slot, w.slot(layer, h, b))
		}
	}
	return t
}

func (w *warmUp) lists(layer, blocks int) *sim.Lists {
	spec := w.d.cfg.Spec
	l := &sim.Lists{Stride: blocks}
	for h := range w.d.geo.KVHeads {
		l.Count = append(l.Count, int32(blocks))
		if w.d.offload {
			l.Open = append(l.Open, w.slot(layer, h, blocks-1))
		}
		if spec.GPULookup() && spec.Progressive() {
			l.ListedAhead = append(l.ListedAhead, int32(blocks))
			l.FirstRound = append(l.FirstRound, int32(blocks))
		}
		for b := range blocks {
			l.Block = append(l.Block, int32(b))
			if w.d.offload && !spec.GPULookup() {
				l.Slot = append(l.Slot, w.slot(layer, h, b))
			}
		}
	}
	return l
}

// moves returns moves with the first blocks of each group as misses, and the others as hits.
func (w *warmUp) moves(layer, loads, blocks int) *kv.Moves {
	m := &kv.Moves{Layer: layer, BlockBytes: w.d.geo.BlockBytes,
		InRounds: w.d.cfg.Spec.Progressive() && loads > 0}
	for h := range w.d.geo.KVHeads {
		for b := range loads {
			m.LoadRefs = append(m.LoadRefs, w.ref(layer, h, b))
			m.Loads++
		}
		for b := loads; b < blocks; b++ {
			m.Seated = append(m.Seated, w.ref(layer, h, b))
		}
	}
	m.Missed, m.Evicted, m.EvictedBefore = m.LoadRefs, m.LoadRefs, len(m.LoadRefs)
	return m
}

func (w *warmUp) ref(layer, head, block int) kv.BlockRef {
	return kv.BlockRef{Group: int32(layer*w.d.geo.KVHeads + head), Block: int32(block),
		Slot: uint32(w.slot(layer, head, block))}
}

// warmLinears sizes the buffers for the largest batch; on a GPU it also runs the linears at every
// number of tokens, because the first call at a number chooses an algorithm.
func (d *Device) warmLinears(run bool) {
	s := d.cfg.Spec
	tokens := s.MaxTokens
	if s.Prefill.Split != "chunked" {
		tokens = max(tokens, s.Prefill.MaxPromptTokens+s.MaxRequests)
	}
	rows := []sim.Row{{Decode: true, To: tokens}}
	d.size(&sim.Step{Rows: rows, Sampled: s.MaxRequests})
	if !run || d.model.IsLatent() || !d.sync() {
		return
	}
	b := &d.scratch
	for n := 1; n <= padded(tokens); n = padded(n + 1) {
		d.linear(weights.QKV, 0, b.h.At, b.qkv.At, n)
		d.linear(weights.O, 0, b.attn.At, b.h.At, n)
		if n <= mlpSlice+mlpMore {
			d.linear(weights.GateUp, 0, b.h.At, b.gateUp.At, n)
			d.linear(weights.Down, 0, b.act.At, b.h.At, n)
		}
		if n <= padded(s.MaxRequests) {
			d.linear(weights.Head, 0, b.h.At, b.logits.At, n)
		}
	}
}
