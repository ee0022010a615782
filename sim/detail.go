package sim

// What a device that moves and computes real data is told beside the counts.

// Row is one request of a step.
type Row struct {
	ID        int   // the request, the same in all of its steps
	Seq       int32 // its handle in kv.BlockRef; -1 without offloading
	Prompt    int   // tokens, after truncation
	MaxTokens int   // prompt and output
	Decode    bool
	// Segmented says that the prefill's KV stays in buffers of one layer; its open block joins
	// the cache with the first decode.
	Segmented bool
	// The row computes positions [From, To) in layers [LayerFrom, LayerTo): a decode the newest
	// token's, in all layers.
	From, To           int
	LayerFrom, LayerTo int
	Emits              bool // a token follows from position To-1
}

// In says whether the row computes a layer.
func (r *Row) In(layer int) bool { return layer >= r.LayerFrom && layer < r.LayerTo }

// Dropped is a request whose KV was given up: finished, or preempted, to be prefilled again
// with all that it had generated.
type Dropped struct {
	ID       int
	Seq      int32
	Finished bool
}

// Table holds the HBM slots of one prefill's blocks in one layer, KV head by KV head:
// Slot[head*Blocks+block]. Empty when the cache does not hold them.
type Table struct {
	Row    int // in Step.Rows
	Blocks int
	Slot   []int32
}

// detail is the scratch of what a step tells such a device.
type detail struct {
	rows    []Row
	dropped []Dropped
	tables  []Table

	layer    int           // that is being listed
	lists    []*layerLists // by layer
	decodeOf []int32       // row of a decode by its handle in kv.BlockRef; -1: none
	choice   Lists         // a layer's, of a device that selects
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
	for i := range d.decodeOf {
		d.decodeOf[i] = -1
	}
	for i := range d.rows {
		for row := &d.rows[i]; row.Seq >= int32(len(d.decodeOf)); {
			d.decodeOf = append(d.decodeOf, -1)
		}
	}
	for i, r := range s.step.decodes {
		if r.seq != nil {
			d.decodeOf[r.seq.Handle()] = int32(i)
		}
	}
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

// makeRoom sizes the lists that a device writes what it selects to.
func (s *Server) makeRoom(layer int) *Lists {
	l, units := &s.detail.choice, len(s.step.decodes)*s.Geometry.KVHeads
	l.Stride = s.stride(layer, false)
	l.Count, l.Block = grow(l.Count, units), grow(l.Block, units*l.Stride)
	return l
}

// most is the most candidates that a head of a layer attends to, or has loaded where its lists
// name those too.
func (s *Server) most(r *request, layer int) int {
	if s.fixed {
		return Candidates(&s.Spec)
	}
	n := 0
	for h := range s.Geometry.KVHeads {
		s.selection(r, layer*s.Geometry.KVHeads+h, false, &s.step.sel)
		if s.Spec.GPULookup() {
			n = max(n, len(s.step.sel.Next))
		}
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

// Dropped returns the requests whose KV was given up since the last step. A device learns of
// them with the next; after the last step there is none.
func (s *Server) Dropped() []Dropped { return s.detail.dropped }
