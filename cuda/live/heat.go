package live

import (
	"time"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/weights"
	"github.com/sparseserve/sparseserve/sim"
)

// afterHeat is a rest that restores the clock: continuous linears lower it below the clock under a
// server's load.
const afterHeat = 300 * time.Millisecond

// heat runs linears of a chunk for Config.Heat, and rests. A card that was idle may hold a higher
// clock for its first seconds, unlike a card under load.
func (d *Device) heat() {
	md, b := d.model, &d.scratch
	values := min(b.h.Bytes/2, 2048*int64(md.Hidden))
	n := int(values / int64(md.Hidden))
	if n > LinearGrid {
		n -= n % LinearGrid // no rows beyond the buffers
	}
	d.launch(&cuda.FillArgs{Dst: b.h.At, Count: values, Seed: 1, Scale: 1}) // zeros draw less power
	const queued = 16
	for begun := time.Now(); time.Since(begun) < d.cfg.Heat && d.sync(); {
		for range queued {
			d.linear(b.h.At, md.tensors[0][weights.QKV], b.qkv.At, n, md.Hidden,
				md.heads()*md.HeadDim)
		}
	}
	d.sync()
	time.Sleep(afterHeat)
}

// warmLinears sizes the buffers for the largest batch; on a GPU it also runs the linears.
func (d *Device) warmLinears(run bool) {
	s, md := d.cfg.Spec, d.model
	tokens := s.MaxTokens
	if s.Prefill.Split != "chunked" {
		tokens = max(tokens, s.Prefill.MaxPromptTokens+s.MaxRequests)
	}
	rows := []sim.Row{{Decode: true, To: tokens}}
	d.size(&sim.Step{Rows: rows, Sampled: s.MaxRequests})
	if !run || !d.sync() {
		return
	}
	b, l := &d.scratch, &md.tensors[0]
	for n := 1; n <= d.cfg.rows(tokens); n = padded(n + 1) {
		d.linear(b.h.At, l[weights.QKV], b.qkv.At, n, md.Hidden, md.heads()*md.HeadDim)
		d.linear(b.attn.At, l[weights.O], b.h.At, n, md.HeadsQ*md.HeadDim, md.Hidden)
		if n <= mlpSlice+mlpMore {
			d.linear(b.h.At, l[weights.GateUp], b.gateUp.At, n, md.Hidden, 2*md.FFN)
			d.linear(b.act.At, l[weights.Down], b.h.At, n, md.FFN, md.Hidden)
		}
		if n <= padded(s.MaxRequests) {
			d.linear(b.h.At, l[weights.Head], b.logits.At, n, md.Hidden, md.Vocab)
		}
	}
}
