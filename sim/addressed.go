package sim

import (
	"errors"
	"fmt"

	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/prefix"
	"github.com/sparseserve/sparseserve/sim/sched"
)

// Row describes one request of a step to a device that computes.
type Row struct {
	ID        int   // request ID
	Seq       int32 // handle in kv.BlockRef; -1 without offloading
	Prompt    int   // tokens, after truncation
	MaxTokens int   // prompt and output
	Decode    bool
	// Segmented reports a layer-segmented prefill. Its KV is in buffers of one layer; the open block
	// joins the cache with the first decode.
	Segmented bool
	// The row computes positions [From, To) in layers [LayerFrom, LayerTo). A decode computes the
	// position of its newest token in all layers.
	From, To           int
	LayerFrom, LayerTo int
	Emits              bool // position To-1 yields a token
	// Pages are, with a prefix cache, the request's block numbers in the server's pool, of HBM or,
	// with offloading, of DRAM. Their content outlives the request. Text is the content of prompt and
	// output as far as the trace names it; nil if unknown.
	Pages []int32
	Text  []prefix.Piece
}

// In reports whether the row computes a layer.
func (r *Row) In(layer int) bool { return layer >= r.LayerFrom && layer < r.LayerTo }

// Dropped is a request whose KV was released: it finished, or it was preempted and will be
// prefilled again, including its generated tokens.
type Dropped struct {
	ID       int
	Seq      int32
	Finished bool
}

// Table holds the HBM slots of one prefill's blocks in one layer, grouped by KV head:
// Slot[head*Blocks+block]. Empty if the cache does not hold the blocks.
type Table struct {
	Row    int // index in Step.Rows
	Blocks int
	Slot   []int32
}

// addressed wraps a device that computes. It passes the step's rows, the blocks that each decode
// and KV head attends to, and their slots. Every head is simulated.
type addressed struct {
	Device
	counted
	cfg      *Config
	requests map[*sched.Request]*request
	rows     []Row
	gone     []Dropped // since the last step
	tables   []Table
	lists    Lists // of one layer
	choice   Lists // selection of one layer, written by the device
	scratch  kv.Selection
}

// checkAddressed returns an error for settings that a device that computes does not support.
func (c *Config) checkAddressed(rate float64) error {
	spec := &c.Spec
	switch {
	case !c.Addressed:
	case c.DeviceSelects && spec.GPULookup():
		return errors.New("sim: what the model selects is looked up by the host, " +
			"which must know it before the next layer; set offload.lookup = \"host\"")
	case spec.GPULookup() && spec.Progressive() && spec.CachesPrefixes():
		return errors.New("sim: the GPU's lookup loads a block that requests share in the round of the " +
			"first of them, which is too late for another's earlier round of progressive attention; " +
			"set offload.lookup = \"host\"")
	case rate < 1:
		return errors.New("sim: every head must be simulated to run on a device that computes; " +
			"set simulation.heads = \"full\"")
	case spec.Sparse() && spec.Selection.RecentBlocks < 1:
		return errors.New("sim: the newest token must attend to itself on a device that computes; " +
			"set selection.recent_blocks to 1 or more")
	}
	return nil
}

// Begin adds the rows of the step.
func (p *addressed) Begin(m *Step) error {
	p.rows = p.rows[:0]
	for _, r := range p.st.decodes {
		row := p.rowOf(r)
		row.Decode, row.Emits = true, true
		row.From, row.To, row.LayerTo = r.Context()-1, r.Context(), p.cfg.Model.Layers
		p.rows = append(p.rows, row)
	}
	for i := range p.st.batch.Prefills {
		seg := &p.st.batch.Prefills[i]
		row := p.rowOf(p.requests[seg.Req])
		row.Segmented = p.cache != nil && p.cfg.Spec.Segmented()
		row.From, row.To = seg.TokenFrom, seg.TokenTo
		row.LayerFrom, row.LayerTo = seg.LayerFrom, seg.LayerTo
		row.Emits = seg.Completes(p.cfg.Model.Layers)
		p.rows = append(p.rows, row)
	}
	m.Rows, m.Dropped = p.rows, p.gone
	err := p.Device.Begin(m)
	p.gone = p.gone[:0]
	return err
}

func (p *addressed) rowOf(r *request) Row {
	row := Row{ID: r.ID, Seq: r.handle(), Prompt: r.Prompt, MaxTokens: r.Prompt + r.Output}
	if p.cfg.Spec.CachesPrefixes() {
		row.Pages = r.Grant.Blocks()
	}
	if c := r.arrival.Content; c != nil {
		row.Text = r.Grant.Text(c.Answer != 0)
	}
	return row
}

// handle returns the cache handle of a request, or -1.
func (r *request) handle() int32 {
	if r.seq == nil {
		return -1
	}
	return r.seq.Handle()
}

func (p *addressed) drop(r *request, finished bool) {
	p.gone = append(p.gone, Dropped{ID: r.ID, Seq: r.handle(), Finished: finished})
}

func (p *addressed) dropped() []Dropped { return p.gone }

// Draft implements Drafter, where the device does.
func (p *addressed) Draft(w *Work, rows int) error { return p.Device.(Drafter).Draft(w, rows) }

// Score makes a selecting device write its selection to lists and uses it as the decodes'
// selections, unless only the device needs it.
func (p *addressed) Score(layer int, w *Work) error {
	if !p.cfg.DeviceSelects || p.keepsChoice() {
		return p.Device.Score(layer, w)
	}
	l, units := &p.choice, len(p.st.decodes)*p.cfg.Geometry.KVHeads
	l.Stride = p.stride(layer, false)
	l.Count, l.Block = grow(l.Count, units), grow(l.Block, units*l.Stride)
	w.Lists = l
	if err := p.Device.Score(layer, w); err != nil {
		return err
	}
	for i := range p.st.decodes {
		if err := p.choose(layer, i); err != nil {
			return fmt.Errorf("layer %d: %w", layer, err)
		}
	}
	return nil
}

// keepsChoice reports whether only the device uses its selections.
func (p *addressed) keepsChoice() bool {
	return p.cfg.DeviceSelects && p.cache == nil && p.cfg.RecordTo == nil
}

// choose sets the selections of the i-th decode from the device's lists.
func (p *addressed) choose(layer, i int) error {
	l, heads, r := &p.choice, p.cfg.Geometry.KVHeads, p.st.decodes[i]
	if r.grid < 0 {
		return nil // every block
	}
	n := p.sel.candidates(r)
	in := make([]uint64, (n+63)/64)
	for h := range heads {
		unit := i*heads + h
		clear(in)
		for _, b := range l.Block[unit*l.Stride:][:l.Count[unit]] {
			if c := int(b) - p.cfg.Spec.Selection.SinkBlocks; c >= 0 && c < n {
				in[c/64] |= 1 << (c % 64)
			}
		}
		if err := r.latest.Choose(layer*heads+h, in, Candidates(&p.cfg.Spec),
			r.grid == r.lastGrid); err != nil {
			return fmt.Errorf("request %d, KV head %d: %w", r.ID, h, err)
		}
	}
	return nil
}

// access runs the cache accesses of a layer and writes its lists.
func (p *addressed) access(at *kv.Layer, dense bool) (int64, error) {
	if len(p.st.decodes) == 0 {
		return p.cache.Fill(at)
	}
	l := p.openLists(at.Number, dense)
	for i, r := range p.st.decodes {
		for g := at.From; g < at.To; g++ {
			p.sel.of(r, g, dense, &p.scratch)
			p.write(l, i, g, &p.scratch)
			p.cache.Access(r.seq, g, &p.scratch)
		}
	}
	loads, err := p.cache.Fill(at)
	if err == nil {
		p.listSlots(l, at.Number)
		p.st.work.Lists = l
	}
	return loads, err
}

// Move adds the addresses of the moved blocks.
func (p *addressed) Move(m *kv.Moves) error {
	if p.cache == nil { // hot buffers: the device moves what its model selects
		return p.Device.Move(m)
	}
	m.LoadRefs = p.cache.Refs()
	if p.cfg.Spec.GPULookup() {
		m.Missed = p.cache.Missed()
		m.Seated, m.Evicted, m.EvictedBefore = p.cache.Changes()
	}
	err := p.Device.Move(m)
	p.cache.ForgetChanges()
	return err
}

// Compute adds the prefill tables and, without offloading, the lists.
func (p *addressed) Compute(layer int, w *Work) error {
	p.tables = p.tables[:0]
	for i := range p.st.batch.Prefills {
		if seg := &p.st.batch.Prefills[i]; seg.In(layer) {
			p.addTable(layer, len(p.st.decodes)+i, p.requests[seg.Req])
		}
	}
	w.Tables = p.tables
	if p.cache == nil && w.Sparse && w.Decodes > 0 && !p.keepsChoice() {
		p.listAll(layer, p.sel.dense(layer))
	}
	return p.Device.Compute(layer, w)
}

// addTable adds the table of one prefill in a layer.
func (p *addressed) addTable(layer, row int, r *request) {
	n := len(p.tables)
	if n < cap(p.tables) {
		p.tables = p.tables[:n+1] // keeps the memory of its Slot
	} else {
		p.tables = append(p.tables, Table{})
	}
	t := &p.tables[n]
	t.Row, t.Blocks, t.Slot = row, 0, t.Slot[:0]
	if !r.pinned {
		return
	}
	t.Blocks = r.seq.Blocks()
	for h := range p.cfg.Geometry.KVHeads {
		for _, slot := range r.seq.Slots(layer*p.cfg.Geometry.KVHeads + h) {
			t.Slot = append(t.Slot, int32(slot))
		}
	}
}
