package sim

import "sparseserve/sim/kv"

// What a device that moves and computes real data is told beside the counts.

// Row is one request of a step.
type Row struct {
	ID        int   // the request, the same in all of its steps
	Seq       int32 // its handle in kv.BlockRef; -1 without offloading
	Prompt    int   // tokens, after truncation
	MaxTokens int   // prompt and output
	Decode    bool
	// Segmented says that the prefill's KV stays in buffers of one layer; its
	// open block joins the cache with the first decode.
	Segmented bool
	// The row computes positions [From, To) in layers [LayerFrom, LayerTo): a
	// decode the newest token's, in all layers.
	From, To           int
	LayerFrom, LayerTo int
	Emits              bool // a token follows from position To-1
}

// In says whether the row computes a layer.
func (r *Row) In(layer int) bool { return layer >= r.LayerFrom && layer < r.LayerTo }

// Dropped is a request whose KV was given up: finished, or preempted, to be
// prefilled again with all that it had generated.
type Dropped struct {
	ID       int
	Seq      int32
	Finished bool
}

// Lists are the blocks that each decode and KV head of one layer attends to;
// unit = row * KVHeads + head. Its Block and Slot entries are
// [unit*Stride : unit*Stride+Count[unit]]; the open block comes last.
type Lists struct {
	Stride int
	Count  []int32
	Block  []int32 // index in the request
	Slot   []int32 // HBM slot; nil without offloading
}

// Table holds the HBM slots of one prefill's blocks in one layer, KV head by KV
// head: Slot[head*Blocks+block]. Empty when the cache does not hold them.
type Table struct {
	Row    int // in Step.Rows
	Blocks int
	Slot   []int32
}

// detail is the scratch of what a step tells such a device.
type detail struct {
	rows    []Row
	dropped []Dropped
	lists   Lists
	tables  []Table
}

// describe lists the batch's requests.
func (s *Server) describe() {
	d := &s.detail
	d.rows = d.rows[:0]
	for _, r := range s.step.decodes {
		row := s.row(r)
		row.Decode, row.Emits = true, true
		row.From, row.To, row.LayerTo = r.Context()-1, r.Context(), s.Model.Layers
		d.rows = append(d.rows, row)
	}
	for i := range s.batch.Prefills {
		seg := &s.batch.Prefills[i]
		row := s.row(s.requests[seg.Req])
		row.Segmented = s.cache != nil && s.sched.Planner().Segmented()
		row.From, row.To = seg.TokenFrom, seg.TokenTo
		row.LayerFrom, row.LayerTo = seg.LayerFrom, seg.LayerTo
		row.Emits = seg.Completes(s.Model.Layers)
		d.rows = append(d.rows, row)
	}
	s.step.meta.Rows, s.step.meta.Dropped = d.rows, d.dropped
}

func (s *Server) row(r *request) Row {
	row := Row{ID: r.ID, Seq: -1, Prompt: r.prompt, MaxTokens: r.prompt + r.Output}
	if r.seq != nil {
		row.Seq = r.seq.Handle()
	}
	return row
}

// drop notes that a request's KV is given up.
func (s *Server) drop(r *request, finished bool) {
	if !s.Detail {
		return
	}
	d := Dropped{ID: r.ID, Seq: -1, Finished: finished}
	if r.seq != nil {
		d.Seq = r.seq.Handle()
	}
	s.detail.dropped = append(s.detail.dropped, d)
}

// list writes what each decode reads of one layer. With offloading the layer's
// blocks have their slots by now.
func (s *Server) list(layer int, dense bool) {
	l := &s.detail.lists
	heads := s.Geometry.KVHeads
	s.makeRoom(layer, dense)
	kv.SideBySide(len(s.step.decodes), func(i int) {
		r := s.step.decodes[i]
		blocks := s.Geometry.Blocks(r.Context())
		var sel kv.Selection
		for h := range heads {
			unit, g := i*heads+h, layer*heads+h
			s.selection(r, g, dense, &sel)
			out := l.Block[unit*l.Stride:][:0]
			if sel.All {
				out = ascend(out, 0, blocks)
			} else {
				out = ascend(out, 0, sel.Sinks)
				for _, c := range sel.Next[:sel.Used] {
					out = append(out, int32(sel.Sinks)+int32(c))
				}
				out = ascend(out, sel.Tail, blocks)
			}
			l.Count[unit] = int32(len(out))
			if s.cache == nil {
				continue
			}
			slots, to := r.seq.Slots(g), l.Slot[unit*l.Stride:]
			for j, b := range out {
				to[j] = int32(slots[b])
			}
		}
	})
	s.step.work.Lists = l
}

func ascend(out []int32, from, to int) []int32 {
	for b := from; b < to; b++ {
		out = append(out, int32(b))
	}
	return out
}

// makeRoom sizes the lists of a layer.
func (s *Server) makeRoom(layer int, dense bool) {
	l := &s.detail.lists
	l.Stride = 0
	for _, r := range s.step.decodes {
		n := s.Geometry.Blocks(r.Context())
		if !dense {
			n = min(n, s.most(r, layer)+s.Spec.SinkBlocks+s.Spec.WindowBlocks)
		}
		l.Stride = max(l.Stride, n)
	}
	units := len(s.step.decodes) * s.Geometry.KVHeads
	l.Count = grow(l.Count, units)
	l.Block = grow(l.Block, units*l.Stride)
	if s.cache != nil {
		l.Slot = grow(l.Slot, units*l.Stride)
	}
}

// most is the most candidates that a head of a layer attends to.
func (s *Server) most(r *request, layer int) int {
	if s.fixed {
		return Candidates(&s.Spec)
	}
	n := 0
	for h := range s.Geometry.KVHeads {
		s.selection(r, layer*s.Geometry.KVHeads+h, false, &s.step.sel)
		n = max(n, s.step.sel.Used)
	}
	return n
}

func grow(x []int32, n int) []int32 {
	if cap(x) < n {
		x = make([]int32, n+n/2)
	}
	return x[:n]
}

// tabulate writes where the prefills of one layer lie in the cache.
func (s *Server) tabulate(layer int) {
	d := &s.detail
	d.tables = d.tables[:0]
	for i := range s.batch.Prefills {
		seg := &s.batch.Prefills[i]
		if !seg.In(layer) {
			continue
		}
		n := len(d.tables)
		if n < cap(d.tables) {
			d.tables = d.tables[:n+1]
		} else {
			d.tables = append(d.tables, Table{})
		}
		t := &d.tables[n]
		t.Row, t.Blocks, t.Slot = len(s.step.decodes)+i, 0, t.Slot[:0]
		r := s.requests[seg.Req]
		if !r.pinned {
			continue
		}
		t.Blocks = r.seq.Blocks()
		for h := range s.Geometry.KVHeads {
			for _, slot := range r.seq.Slots(layer*s.Geometry.KVHeads + h) {
				t.Slot = append(t.Slot, int32(slot))
			}
		}
	}
	s.step.work.Tables = d.tables
}

// Dropped returns the requests whose KV was given up since the last step. A
// device learns of them with the next; after the last step there is none.
func (s *Server) Dropped() []Dropped { return s.detail.dropped }
