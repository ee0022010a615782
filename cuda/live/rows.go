package live

import (
	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/weights"
	"github.com/sparseserve/sparseserve/sim"
)

// active is the batch of one layer: the rows that compute it, contiguous in the residual
// stream, decodes first.
type active struct {
	rows     []place
	next     []place
	tokens   int
	x        int      // which of scratch.x holds them
	position cuda.Ptr // int32 [tokens]
	emits    cuda.Ptr // int32: rows of the tokens that another follows
	sampled  int      // how many these are
	layer    int      // for which Q, K and V are ready; -1: none
	normed   bool     // scratch.h holds the layer's normed input
}

// place is the position of one row of the step in the residual stream.
type place struct {
	row   *sim.Row
	req   *request
	at, n int // tokens
}

func (a *active) clear() {
	a.rows, a.tokens, a.layer, a.normed = a.rows[:0], 0, -1, false
}

// at returns row i of the residual stream.
func (d *Device) at(i int) cuda.Ptr {
	return d.scratch.x[d.active.x].At + cuda.Ptr(i*d.model.Hidden*2)
}

// gather makes the rows of a layer contiguous. It moves nothing if the previous layer had the same
// rows.
func (d *Device) gather(layer int) {
	a := &d.active
	a.next = a.next[:0]
	tokens := 0
	for i := range d.rows {
		if row := &d.rows[i]; row.In(layer) {
			n := row.To - row.From
			a.next = append(a.next, place{row, d.of[i], tokens, n})
			tokens += n
		}
	}
	if same(a.rows, a.next) {
		return
	}
	position, to := d.stage.Words(tokens + len(a.next))
	emits := position[tokens:][:0]
	for _, p := range a.next {
		for i := range p.n {
			position[p.at+i] = int32(p.row.From + i)
		}
		if p.row.Emits {
			emits = append(emits, int32(p.at+p.n-1))
		}
	}
	old := d.scratch.x[a.x].At
	a.x = 1 - a.x
	a.position, a.emits, a.sampled, a.normed = to, to+cuda.Ptr(4*tokens), len(emits), false
	if layer == 0 {
		d.embed(tokens)
	} else {
		d.carryOver(old)
	}
	a.rows, a.next = a.next, a.rows
	a.tokens = tokens
}

func same(a, b []place) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].row != b[i].row {
			return false
		}
	}
	return true
}

// embed writes the embeddings of the rows of layer 0.
func (d *Device) embed(tokens int) {
	ids, at := d.stage.Words(tokens)
	for _, p := range d.active.next {
		copy(ids[p.at:p.at+p.n], p.req.tokens[p.row.From:p.row.To])
	}
	d.stage.Send()
	d.launch(&cuda.EmbedArgs{
		Table: d.model.tensors[0][weights.Embed], Token: at, Out: d.at(0),
		Tokens: int32(tokens), Hidden: int32(d.model.Hidden),
	})
}

// carryOver copies each row's hidden state from its place after the last layer or the last step.
func (d *Device) carryOver(old cuda.Ptr) {
	d.stage.Send()
	width := int64(d.model.Hidden) * 2
	for _, p := range d.active.next {
		from := p.req.home.At + cuda.Ptr(int64(p.row.From)*width)
		for _, q := range d.active.rows {
			if q.row == p.row {
				from = old + cuda.Ptr(int64(q.at)*width)
			}
		}
		d.launch(&cuda.MemcpyArgs{Dst: d.at(p.at), Src: from, Bytes: int64(p.n) * width})
	}
}

// putAway saves the hidden state of prefills that continue with another layer in a later step.
func (d *Device) putAway(layer int) {
	width := int64(d.model.Hidden) * 2
	for _, p := range d.active.rows {
		if !p.row.Segmented || p.row.LayerTo != layer+1 || layer+1 == d.model.Layers {
			continue
		}
		home := p.req.home.At + cuda.Ptr(int64(p.row.From)*width)
		d.launch(&cuda.MemcpyArgs{Dst: home, Src: d.at(p.at), Bytes: int64(p.n) * width})
	}
}
