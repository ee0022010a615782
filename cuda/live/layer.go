package live

import (
	"fmt"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/weights"
	"github.com/sparseserve/sparseserve/sim"
)

// ready computes Q, K and V of a layer, once. For prefills, attend rotates them and writes them to
// their blocks.
func (d *Device) ready(layer int) {
	a, s, md := &d.active, &d.scratch, d.model
	if a.layer == layer {
		return
	}
	d.gather(layer)
	a.layer = layer
	w := &md.tensors[layer]
	if !a.normed {
		d.norm(&cuda.RMSNormArgs{X: d.at(0), Weight: w[weights.AttnNorm], Rows: int32(a.tokens)})
	}
	d.linear(s.h.At, w[weights.QKV], s.qkv.At, padded(a.tokens), md.Hidden,
		md.heads()*md.HeadDim)
	// The queries of decodes are also packed for decode attention. Without offloading the places of
	// their blocks are already known.
	if n := d.decodes.n; n > 0 {
		rope := d.rope(0, n)
		if !d.offload {
			rope = d.decodeWrite(layer)
		}
		rope.QOut = s.q.At
		d.launch(rope)
	}
	d.clock.mark(phaseLinears)
}

// rope returns the arguments for tokens [from, to) of the layer.
func (d *Device) rope(from, to int) *cuda.RopeArgs {
	md := d.model
	return &cuda.RopeArgs{
		QKV: d.qkv(from, 0), Position: d.active.position + cuda.Ptr(4*from), InvFreq: md.invFreq,
		Tokens: int32(to - from), HeadsQ: int32(md.HeadsQ), HeadsKV: int32(md.HeadsKV),
		HeadDim: int32(md.HeadDim), BlockTokens: int32(d.geo.BlockTokens),
	}
}

// decodeWrite is rope with the places of the decodes' tokens in the layer's blocks: their page
// without offloading, otherwise the future contents of the table.
func (d *Device) decodeWrite(layer int) *cuda.RopeArgs {
	c := &d.decodes
	a := d.rope(0, c.n)
	a.Pool, a.Row = d.layerPool(layer), d.scratch.ordered.At
	if !d.offload {
		a.Table, a.RowStride, a.Pages = c.table, int64(c.most), 1
	}
	return a
}

// qkv returns the address of one head of one token.
func (d *Device) qkv(token, head int) cuda.Ptr {
	values := int64(token*d.model.heads()+head) * int64(d.model.HeadDim)
	return d.scratch.qkv.At + cuda.Ptr(2*values)
}

// linear has more rows than tokens; the additional rows are padding.
func (d *Device) linear(x, w, y cuda.Ptr, rows, in, out int) {
	d.launch(&cuda.LinearArgs{
		X: x, W: w, Y: y, Tokens: int32(rows), In: int32(in), Out: int32(out),
	})
}

// padded rounds a number of tokens up to one at which warm has run linears. At any other number the
// first call chooses an algorithm and may load its kernel, which takes milliseconds.
func padded(tokens int) int {
	if tokens <= LinearGrid {
		return tokens
	}
	return (tokens + LinearGrid - 1) / LinearGrid * LinearGrid
}

// LinearGrid is the number of tokens above which linears run at multiples of it.
const LinearGrid = 64

// norm writes normed rows to scratch.h.
func (d *Device) norm(a *cuda.RMSNormArgs) {
	a.Out, a.Hidden, a.Eps = d.scratch.h.At, int32(d.model.Hidden), float32(d.model.Eps)
	d.launch(a)
}

// addNorm adds scratch.h to the residual stream and writes the sum's norm to scratch.h.
func (d *Device) addNorm(weight cuda.Ptr) {
	d.norm(&cuda.RMSNormArgs{
		X: d.scratch.h.At, Residual: d.at(0), Weight: weight, Rows: int32(d.active.tokens),
	})
}

// Compute implements sim.Device.
func (d *Device) Compute(layer int, w *sim.Work) error {
	defer d.enter(&d.counters.Lists, layer)()
	d.compute(layer, w)
	d.counters.Layers++
	return d.queue.Err()
}

func (d *Device) compute(layer int, w *sim.Work) {
	d.ready(layer)
	if a := &d.active; len(a.rows) != w.Decodes+len(w.Prefill) || a.tokens != w.Tokens {
		d.queue.Fail(fmt.Errorf("%d rows of %d tokens, the server has %d decodes and %d prefills "+
			"of %d",
			len(a.rows), a.tokens, w.Decodes, len(w.Prefill), w.Tokens))
		return
	}
	d.attend(layer, w)
	d.finishLayer(layer)
	d.nameHits(layer + 1)
}

// finishLayer runs the layer after attention.
func (d *Device) finishLayer(layer int) {
	a, s, md := &d.active, &d.scratch, d.model
	t := &md.tensors[layer]
	d.linear(s.attn.At, t[weights.O], s.h.At, padded(a.tokens), md.HeadsQ*md.HeadDim, md.Hidden)
	d.addNorm(t[weights.MLPNorm])
	d.mlp(t)
	d.addNorm(md.nextNorm(layer))
	a.normed = true
	d.putAway(layer)
	d.clock.mark(phaseLinears)
}

// mlp runs the MLP from and to scratch.h, slice by slice.
func (d *Device) mlp(t *tensors) {
	s, md := &d.scratch, d.model
	for from, n := 0, 0; from < d.active.tokens; from += n {
		n = nextSlice(d.active.tokens - from)
		h, rows := s.h.At+cuda.Ptr(from*md.Hidden*2), padded(n)
		d.linear(h, t[weights.GateUp], s.gateUp.At, rows, md.Hidden, 2*md.FFN)
		d.launch(&cuda.SiluMulArgs{
			X: s.gateUp.At, Out: s.act.At, Tokens: int32(n), FFN: int32(md.FFN),
		})
		d.linear(s.act.At, t[weights.Down], h, rows, md.FFN, md.Hidden)
	}
}
