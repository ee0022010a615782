package latent

import (
	"unsafe"

	"github.com/sparseserve/sparseserve/cuda"
)

// pick finds the greedy token of every row that emits one, and copies tokens and misses to the
// host.
func (d *Device) pick() {
	b, s, r := &d.scratch, &d.shape, &d.rows
	w := &d.model.tensors[0]
	n := r.sampled
	if n > 0 {
		d.launch(&cuda.RMSNormArgs{X: b.x.At, Weight: w[norm], Out: b.h.At, Row: r.emits,
			Rows: int32(n), Hidden: int32(s.Hidden), Eps: eps})
		d.linear(b.h.At, w[head], b.logits.At, n, s.Hidden, s.Vocab)
		d.launch(&cuda.ArgmaxArgs{Logits: b.logits.At, Out: b.picked.At, Rows: int32(n),
			Vocab: int32(s.Vocab), Stride: int32(s.Vocab)},
			&cuda.MemcpyArgs{Dst: d.picked.Ptr(), Src: b.picked.At, Bytes: int64(4 * n)})
	}
	if misses := s.Layers * r.decodes; d.slots > 0 && misses > 0 {
		d.launch(&cuda.MemcpyArgs{Dst: d.picked.Ptr() + cuda.Ptr(4*n), Src: b.misses.At,
			Bytes: int64(4 * misses)})
	}
}

// emit hands the picked tokens to their requests and counts; the stream is idle.
func (d *Device) emit() {
	r, s := &d.rows, &d.shape
	words, sampled := cuda.Slice[int32](d.picked), 0
	for i := range d.step.Rows {
		row, q := &d.step.Rows[i], d.batch[i]
		if row.Decode {
			d.counters.Selected += int64(s.Layers * min(s.TopK, row.To))
		}
		if !row.Emits {
			continue
		}
		q.tokens = append(q.tokens, words[sampled])
		if d.cfg.Logits != nil {
			d.cfg.Logits(q.id, row.To-1, download[cuda.Half](d,
				d.scratch.logits.At+cuda.Ptr(2*sampled*s.Vocab), s.Vocab))
		}
		if d.slots > 0 && !row.Decode { // its rows are on the host, and in its buffers
			d.free(&q.rows)
		}
		sampled++
	}
	if d.slots == 0 {
		return
	}
	for _, n := range words[r.sampled:][:s.Layers*r.decodes] {
		d.counters.Loaded += int64(n)
	}
	d.counters.Saved += int64(s.Layers * r.decodes)
}

// show passes a layer's selections to Config.Chosen.
func (d *Device) show(layer int) {
	if d.cfg.Chosen == nil || d.err != nil {
		return
	}
	r, k := &d.rows, d.shape.TopK
	lists := download[int32](d, d.scratch.list.At, r.tokens*k)
	counts := download[int32](d, d.scratch.count.At, r.tokens)
	var misses []int32
	if d.slots > 0 && r.decodes > 0 {
		misses = download[int32](d, d.scratch.misses.At+cuda.Ptr(4*layer*r.decodes), r.decodes)
	}
	at := 0
	for i := range d.step.Rows {
		for p := d.step.Rows[i].From; p < d.step.Rows[i].To && d.err == nil; p++ {
			missed := -1
			if at < len(misses) {
				missed = int(misses[at])
			}
			d.cfg.Chosen(d.batch[i].id, p, layer, lists[at*k:][:counts[at]], missed)
			at++
		}
	}
}

// download copies device memory to the host and waits.
func download[T cuda.Half | int32](d *Device, from cuda.Ptr, n int) []T {
	values := make([]T, n)
	bytes := int64(n) * int64(unsafe.Sizeof(values[0]))
	host, err := d.m.HostAlloc(bytes, cuda.DriverPages)
	if d.fail(err); d.err != nil {
		return values
	}
	d.launch(&cuda.MemcpyArgs{Dst: host.Ptr(), Src: from, Bytes: bytes})
	d.sync()
	copy(values, cuda.Slice[T](host))
	d.fail(d.m.HostFree(host))
	return values
}
