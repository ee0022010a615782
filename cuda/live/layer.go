package live

import (
	"fmt"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/weights"
	"github.com/sparseserve/sparseserve/sim"
)

// ready computes queries, keys and values of a layer, once.
func (d *Device) ready(layer int) {
	a := &d.active
	if a.layer == layer {
		return
	}
	d.gather(layer)
	a.layer = layer
	if !a.normed {
		d.norm(&cuda.RMSNormArgs{X: d.at(0), Weight: d.model.tensors[layer][weights.AttnNorm],
			Rows: int32(a.tokens)})
	}
	d.attention.project(layer)
	d.clock.mark(phaseLinears)
}

// project implements attention. For prefills, attend rotates Q and K and writes K and V to their
// blocks.
func (d *paged) project(layer int) {
	s := &d.scratch
	d.linear(weights.QKV, layer, s.h.At, s.qkv.At, d.active.tokens)
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
}

// rope returns the arguments for tokens [from, to) of the layer.
func (d *paged) rope(from, to int) *cuda.RopeArgs {
	md := d.model
	return &cuda.RopeArgs{
		QKV: d.qkv(from, 0), Position: d.active.position + cuda.Ptr(4*from), InvFreq: md.invFreq,
		Tokens: int32(to - from), HeadsQ: int32(md.QHeads), HeadsKV: int32(md.KVHeads),
		HeadDim: int32(md.HeadDim), BlockTokens: int32(d.geo.BlockTokens),
	}
}

// decodeWrite is rope with the places of the decodes' tokens in the layer's blocks: their page
// without offloading, otherwise the future contents of the table.
func (d *paged) decodeWrite(layer int) *cuda.RopeArgs {
	c := &d.decodes
	a := d.rope(0, c.n)
	a.Pool, a.Row = d.layerPool(layer), d.orderAt
	if !d.offload {
		a.Table, a.RowStride, a.Pages = c.table, int64(c.most), 1
	}
	return a
}

// qkv returns the address of one head of one token.
func (d *paged) qkv(token, head int) cuda.Ptr {
	values := int64(token*d.model.heads()+head) * int64(d.model.HeadDim)
	return d.scratch.qkv.At + cuda.Ptr(2*values)
}

// linear multiplies rows of x by a tensor of a layer. It has more rows than tokens; the additional
// rows are padding.
func (d *Device) linear(kind weights.Kind, layer int, x, y cuda.Ptr, tokens int) {
	out, in := weights.Tensor{Kind: kind}.Shape(d.model.Config)
	d.launch(&cuda.LinearArgs{X: x, W: d.model.tensors[layer][kind], Y: y,
		Tokens: int32(padded(tokens)), In: int32(in), Out: int32(out)})
}

// padded rounds a number of tokens up to one at which warm has run linears. At any other number the
// first call chooses an algorithm and may load its kernel, which takes milliseconds. cublasLt would
// not help, because its heuristic chooses the same kernels as cublasGemmEx.
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
	d.attention.attend(layer, w)
	d.finishLayer(layer)
}

// finishLayer runs the layer after attention.
func (d *Device) finishLayer(layer int) {
	a, s := &d.active, &d.scratch
	d.linear(weights.O, layer, s.attn.At, s.h.At, a.tokens)
	d.addNorm(d.model.tensors[layer][weights.MLPNorm])
	d.mlp(layer)
	d.addNorm(d.model.nextNorm(layer))
	a.normed = true
	d.putAway(layer)
	d.clock.mark(phaseLinears)
}

// mlp runs the MLP from and to scratch.h, slice by slice.
func (d *Device) mlp(layer int) {
	s, md := &d.scratch, d.model
	for from, n := 0, 0; from < d.active.tokens; from += n {
		n = nextSlice(d.active.tokens - from)
		h := s.h.At + cuda.Ptr(from*md.Hidden*2)
		d.linear(weights.GateUp, layer, h, s.gateUp.At, n)
		d.launch(&cuda.SiluMulArgs{
			X: s.gateUp.At, Out: s.act.At, Tokens: int32(n), FFN: int32(md.FFN),
		})
		d.linear(weights.Down, layer, s.act.At, h, n)
	}
}
