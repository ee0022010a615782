package live

import (
	"fmt"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/weights"
)

// pick finds the greedy token of every row that emits one.
func (d *Device) pick() {
	n := d.step.Sampled
	if n == 0 {
		return
	}
	md, s := d.model, &d.scratch
	if i := d.active.sampled; i != n {
		d.queue.Fail(fmt.Errorf("%d rows emit a token, the server counts %d", i, n))
		return
	}
	d.norm(&cuda.RMSNormArgs{
		X: d.at(0), Weight: md.tensors[0][weights.Norm], Row: d.active.emits, Rows: int32(n),
	})
	d.linear(weights.Head, 0, s.h.At, s.logits.At, n)
	d.launch(&cuda.ArgmaxArgs{
		Logits: s.logits.At, Out: s.picked.At, Rows: int32(n), Vocab: int32(md.Vocab),
		Stride: int32(md.Vocab),
	})
	d.launch(&cuda.MemcpyArgs{Dst: d.tokens.Ptr(), Src: s.picked.At, Bytes: int64(4 * n)})
}

// emit hands the picked tokens to their requests; the stream is idle.
func (d *Device) emit() {
	picked := cuda.Slice[int32](d.tokens)
	i := 0
	for _, p := range d.active.rows {
		if !p.row.Emits {
			continue
		}
		p.req.next(picked[i])
		if d.cfg.Logits != nil {
			bytes := int64(2 * d.model.Vocab)
			row := d.scratch.logits.At + cuda.Ptr(int64(i)*bytes)
			d.show(row, bytes, func(m cuda.HostMemory) {
				d.cfg.Logits(p.req.id, p.row.To-1, cuda.Slice[cuda.Half](m))
			})
		}
		i++
	}
}

// next adds the next token: from the trace's text if it has one, otherwise the picked token.
func (r *request) next(picked int32) {
	if len(r.answer) > 0 {
		picked, r.answer = r.answer[0], r.answer[1:]
	}
	r.tokens = append(r.tokens, picked)
}

// show copies device memory to the host for a test's hook.
func (d *Device) show(at cuda.Ptr, bytes int64, hook func(cuda.HostMemory)) {
	host, err := d.m.HostAlloc(bytes, cuda.DriverPages)
	if err != nil {
		d.queue.Fail(err)
		return
	}
	d.launch(&cuda.MemcpyArgs{Dst: host.Ptr(), Src: at, Bytes: bytes})
	if d.sync() {
		hook(host)
	}
	d.queue.Fail(d.m.HostFree(host))
}

// sync waits for the stream that computes and reports whether there was no error so far.
func (d *Device) sync() bool {
	d.queue.Fail(d.m.StreamSync(d.stream))
	return d.queue.Err() == nil
}
