package live

import (
	"fmt"

	"sparseserve/cuda"
	"sparseserve/sim"
)

// ready computes Q, K and V of a layer, once; attend turns those of prefills, and writes them to their blocks at one go.
func (d *Device) ready(layer int) error {
	a, s, md := &d.active, &d.scratch, d.model
	if a.layer == layer {
		return nil
	}
	if err := d.gather(layer); err != nil {
		return err
	}
	a.layer = layer
	w := &md.layers[layer]
	if !a.normed {
		norm := &cuda.RMSNormArgs{X: d.at(0), Weight: w.attnNorm, Out: s.h.at, Rows: int32(a.tokens), Hidden: int32(md.Hidden), Eps: float32(md.Eps)}
		if err := d.m.RMSNorm(norm, d.stream); err != nil {
			return err
		}
	}
	if err := d.linear(s.h.at, w.qkv, s.qkv.at, a.tokens, md.Hidden, md.heads()*md.HeadDim); err != nil {
		return err
	}
	// The queries of decodes are also packed, as decode attention takes them. Where their blocks lie is known by now if nothing is offloaded.
	n := d.decodes.n
	if n > 0 {
		rope := d.rope(0, n)
		if !d.offload {
			rope = d.decodeWrite(layer)
		}
		rope.QOut = s.q.at
		if err := d.m.Rope(&rope, d.stream); err != nil {
			return err
		}
	}
	return d.clock.mark(phaseLinears)
}

// rope returns the arguments for tokens [from, to) of the layer.
func (d *Device) rope(from, to int) cuda.RopeArgs {
	md := d.model
	return cuda.RopeArgs{
		QKV: d.qkv(from, 0), Position: d.active.position + cuda.Ptr(4*from), InvFreq: md.invFreq, Tokens: int32(to - from),
		HeadsQ: int32(md.HeadsQ), HeadsKV: int32(md.HeadsKV), HeadDim: int32(md.HeadDim), BlockTokens: int32(d.geo.BlockTokens),
	}
}

// decodeWrite is rope with a place in the layer's blocks for the decodes' tokens: without offloading the one that their page has, else what the
// table will say.
func (d *Device) decodeWrite(layer int) cuda.RopeArgs {
	c := &d.decodes
	a := d.rope(0, c.n)
	a.Pool, a.Row = d.layerPool(layer), d.scratch.ordered.at
	if !d.offload {
		a.Table, a.RowStride, a.Pages = c.table, int64(c.most), 1
	}
	return a
}

// qkv returns the address of one head of one token.
func (d *Device) qkv(token, head int) cuda.Ptr {
	return d.scratch.qkv.at + cuda.Ptr(int64(token*d.model.heads()+head)*int64(d.model.HeadDim)*2)
}

// linear runs at a padded number of tokens; the rows beyond mean nothing.
func (d *Device) linear(x, w, y cuda.Ptr, tokens, in, out int) error {
	return d.m.Linear(&cuda.LinearArgs{X: x, W: w, Y: y, Tokens: int32(padded(tokens)), In: int32(in), Out: int32(out)}, d.stream)
}

// padded rounds a number of tokens up to one that warm has run linears at. The first call at any other size chooses an algorithm and may load its
// kernel: 0.6 ms a step for a few tokens, 2 to 18 ms for some hundred, on an H200. A server that has been up for a while has seen all sizes; a run of
// some minutes meets most last chunks of a prompt for the first time.
func padded(tokens int) int {
	if tokens <= LinearGrid {
		return tokens
	}
	return (tokens + LinearGrid - 1) / LinearGrid * LinearGrid
}

// LinearGrid is the number of tokens above which linears run at multiples of it.
const LinearGrid = 64

// Compute implements sim.Device.
func (d *Device) Compute(layer int, w *sim.Work) error {
	d.enter(&d.counters.Lists)
	defer d.leave()
	d.queue.at(d.step.Index, layer)
	if err := d.compute(layer, w); err != nil {
		return told(err, "step %d, layer %d", d.step.Index, layer)
	}
	d.counters.Layers++
	return nil
}

func (d *Device) compute(layer int, w *sim.Work) error {
	if w.Lists != nil && w.Lists.Kept {
		d.stage.keep(w.Lists.Count)
	}
	if err := d.ready(layer); err != nil {
		return err
	}
	if len(d.active.rows) != w.Decodes+len(w.Prefill) || d.active.tokens != w.Tokens {
		return fmt.Errorf("%d rows of %d tokens, the server has %d decodes and %d prefills of %d", len(d.active.rows), d.active.tokens, w.Decodes, len(w.Prefill), w.Tokens)
	}
	if err := d.attend(layer, w); err != nil {
		return err
	}
	a, s, md := &d.active, &d.scratch, d.model
	weights := &md.layers[layer]
	if err := d.linear(s.attn.at, weights.o, s.h.at, a.tokens, md.HeadsQ*md.HeadDim, md.Hidden); err != nil {
		return err
	}
	if err := d.addNorm(weights.mlpNorm); err != nil {
		return err
	}
	for from, n := 0, 0; from < a.tokens; from += n {
		n = nextSlice(a.tokens - from)
		h := s.h.at + cuda.Ptr(from*md.Hidden*2)
		if err := d.linear(h, weights.gateUp, s.gateUp.at, n, md.Hidden, 2*md.FFN); err != nil {
			return err
		}
		if err := d.m.SiluMul(&cuda.SiluMulArgs{X: s.gateUp.at, Out: s.act.at, Tokens: int32(n), FFN: int32(md.FFN)}, d.stream); err != nil {
			return err
		}
		if err := d.linear(s.act.at, weights.down, h, n, md.FFN, md.Hidden); err != nil {
			return err
		}
	}
	if err := d.addNorm(md.nextNorm(layer)); err != nil {
		return err
	}
	a.normed = true
	if err := d.putAway(layer); err != nil {
		return err
	}
	return d.clock.mark(phaseLinears)
}

// addNorm adds scratch.h to the residual stream and leaves the sum's norm in scratch.h.
func (d *Device) addNorm(weight cuda.Ptr) error {
	h, md := d.scratch.h.at, d.model
	return d.m.RMSNorm(&cuda.RMSNormArgs{X: h, Residual: d.at(0), Weight: weight, Out: h, Rows: int32(d.active.tokens), Hidden: int32(md.Hidden), Eps: float32(md.Eps)}, d.stream)
}

// pick finds the greedy token of every row that emits one.
func (d *Device) pick() error {
	n := d.step.Sampled
	if n == 0 {
		return nil
	}
	md, s := d.model, &d.scratch
	if i := d.active.sampled; i != n {
		return fmt.Errorf("%d rows emit a token, the server counts %d", i, n)
	}
	norm := &cuda.RMSNormArgs{X: d.at(0), Weight: md.norm, Out: s.h.at, Row: d.active.emits, Rows: int32(n), Hidden: int32(md.Hidden), Eps: float32(md.Eps)}
	if err := d.m.RMSNorm(norm, d.stream); err != nil {
		return err
	}
	if err := d.linear(s.h.at, md.head, s.logits.at, n, md.Hidden, md.Vocab); err != nil {
		return err
	}
	if err := d.m.Argmax(&cuda.ArgmaxArgs{Logits: s.logits.at, Out: s.picked.at, Rows: int32(n), Vocab: int32(md.Vocab), Stride: int32(md.Vocab)}, d.stream); err != nil {
		return err
	}
	return d.m.Carry(&cuda.MemcpyArgs{Dst: d.tokens.Ptr(), Src: s.picked.at, Bytes: int64(4 * n)}, d.stream)
}

// emit hands the picked tokens to their requests; the stream is idle.
func (d *Device) emit() error {
	picked := cuda.Slice[int32](d.tokens)
	i := 0
	for _, p := range d.active.rows {
		if !p.row.Emits {
			continue
		}
		p.req.tokens = append(p.req.tokens, picked[i])
		if d.cfg.Logits != nil {
			if err := d.show(p.req, p.row.To-1, i); err != nil {
				return err
			}
		}
		i++
	}
	return nil
}

// show gives one row of logits to whoever asked for them.
func (d *Device) show(r *request, position, row int) error {
	bytes := int64(2 * d.model.Vocab)
	host, err := d.m.HostAlloc(bytes, cuda.DriverPages)
	if err != nil {
		return err
	}
	if err := d.m.Memcpy(&cuda.MemcpyArgs{Dst: host.Ptr(), Src: d.scratch.logits.at + cuda.Ptr(int64(row)*bytes), Bytes: bytes}, d.stream); err != nil {
		return err
	}
	if err := d.m.StreamSync(d.stream); err != nil {
		return err
	}
	d.cfg.Logits(r.id, position, cuda.Slice[cuda.Half](host))
	return d.m.HostFree(host)
}
