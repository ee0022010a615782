package live

import (
	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/live/mem"
	"github.com/sparseserve/sparseserve/cuda/weights"
	"github.com/sparseserve/sparseserve/sim"
)

// scratch is the device memory that a step works in. It grows to the largest step so far.
type scratch struct {
	// residual stream [tokens][hidden]; rows that change move to the other
	x      [2]mem.Buffer
	h      mem.Buffer // normed input, and output of a linear [tokens][hidden]
	qkv    mem.Buffer // [tokens][HeadsQ + 2 HeadsKV][D]
	attn   mem.Buffer // [tokens][HeadsQ][D]
	gateUp mem.Buffer // [slice][2 FFN]
	act    mem.Buffer // [slice][FFN]
	q      mem.Buffer // of decodes, packed [decodes][HeadsQ][D]
	scores mem.Buffer // fp32 [decodes][HeadsKV][blocks]
	list   mem.Buffer // int32 [decodes][HeadsKV][budget]
	count  mem.Buffer // int32 [decodes][HeadsKV]
	zeroed mem.Buffer // workspaces that must be zero at first
	logits mem.Buffer // [rows][vocab]
	picked mem.Buffer // int32 [rows]
}

// mlpSlice is the number of tokens that pass the MLP together: enough to fill the card, with small
// intermediate activations for a long prompt. A last slice is up to mlpMore longer, mainly for the
// decodes in a prompt's batch, so that weights are not read once more.
const (
	mlpSlice = 4096
	mlpMore  = 512
)

// nextSlice returns how many of the remaining tokens pass the MLP next.
func nextSlice(left int) int {
	if left > mlpSlice+mlpMore {
		return mlpSlice
	}
	return left
}

// size grows the buffers for a step.
func (d *Device) size(s *sim.Step) {
	tokens, decodes := 0, 0
	for i := range s.Rows {
		row := &s.Rows[i]
		tokens += row.To - row.From
		if row.Decode {
			decodes++
		}
	}
	for _, g := range d.scratch.needs(&d.model.Config, padded(tokens), decodes,
		padded(s.Sampled)) {
		d.grow(g.b, g.bytes, g.what)
	}
	d.attention.size(s)
}

type need struct {
	b     *mem.Buffer
	bytes int64
	what  string
}

// needs lists the buffers of a step and their sizes.
func (b *scratch) needs(md *weights.Config, tokens, decodes, sampled int) []need {
	slice := min(tokens, mlpSlice+mlpMore)
	wide := int64(md.QHeads * md.HeadDim)
	return []need{
		{&b.x[0], int64(tokens) * int64(md.Hidden) * 2, "hidden state"},
		{&b.x[1], int64(tokens) * int64(md.Hidden) * 2, "hidden state"},
		{&b.h, int64(tokens) * int64(md.Hidden) * 2, "normed state"},
		{&b.qkv, int64(tokens) * int64((md.QHeads+2*md.KVHeads)*md.HeadDim) * 2, "Q, K and V"},
		{&b.attn, int64(tokens) * int64(md.Attended()) * 2, "attention output"},
		{&b.gateUp, int64(slice) * int64(2*md.FFN) * 2, "gate and up"},
		{&b.act, int64(slice) * int64(md.FFN) * 2, "activation"},
		{&b.q, int64(decodes) * wide * 2, "queries"},
		{&b.logits, int64(sampled) * int64(md.Vocab) * 2, "logits"},
		{&b.picked, int64(sampled) * 4, "tokens"},
	}
}

// grow gives a buffer at least the given bytes; its contents are lost.
func (d *Device) grow(b *mem.Buffer, bytes int64, what string) {
	grew, err := b.Grow(d.m, d.stream, bytes, what)
	if d.queue.Fail(err); grew {
		d.grown++
	}
}

// growZeroed is grow for memory that kernels want zeroed once.
func (d *Device) growZeroed(b *mem.Buffer, bytes int64, what string) {
	if b.Bytes < bytes {
		d.grow(b, bytes, what)
		d.launch(&cuda.MemsetArgs{Dst: b.At, Bytes: b.Bytes})
	}
}
