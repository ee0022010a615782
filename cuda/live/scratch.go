package live

import (
	"fmt"
	"unsafe"

	"sparseserve/cuda"
	"sparseserve/cuda/weights"
	"sparseserve/sim"
)

// scratch is the device memory that a step works in. It grows to the largest step so far.
type scratch struct {
	x       [2]buffer // residual stream [tokens][hidden]; the second takes the rows when they change
	h       buffer    // normed input, and output of a linear [tokens][hidden]
	qkv     buffer    // [tokens][HeadsQ + 2 HeadsKV][D]
	attn    buffer    // [tokens][HeadsQ][D]
	gateUp  buffer    // [slice][2 FFN]
	act     buffer    // [slice][FFN]
	q       buffer    // of decodes, packed [decodes][HeadsQ][D]
	scores  buffer    // fp32 [decodes][HeadsKV][blocks]
	first   buffer    // int64 [layers][decodes][KVHeads] index of the unit's first digest
	list    buffer    // int32 [decodes][HeadsKV][budget]
	count   buffer    // int32 [decodes][HeadsKV]
	zeroed  buffer    // workspaces that must be zero at first
	logits  buffer    // [rows][vocab]
	picked  buffer    // int32 [rows]
	ordered buffer    // int32 0, 1, 2, ..
}

// buffer is device memory that grows.
type buffer struct {
	at    cuda.Ptr
	bytes int64
}

// mlpSlice is how many tokens pass the MLP at once: enough to fill the card, and the intermediate activations of a long prompt stay small. A last slice
// takes up to mlpMore with it, a prompt's decodes above all, for which weights would be read once more.
const (
	mlpSlice = 4096
	mlpMore  = 512
)

// nextSlice is how many of the tokens that are left pass the MLP next.
func nextSlice(left int) int {
	if left > mlpSlice+mlpMore {
		return mlpSlice
	}
	return left
}

// size makes room for a step.
func (d *Device) size(s *sim.Step) error {
	tokens, decodes := 0, 0
	for i := range s.Rows {
		tokens += s.Rows[i].To - s.Rows[i].From
		if s.Rows[i].Decode {
			decodes++
		}
	}
	for _, g := range d.scratch.needs(&d.model.Config, padded(tokens), decodes, padded(s.Sampled)) {
		if err := d.grow(g.b, g.bytes, g.what); err != nil {
			return err
		}
	}
	return d.count(s)
}

// count uploads 0, 1, 2, .. as far as the step's decodes and layer-segmented prefills need it, unless it is there.
func (d *Device) count(s *sim.Step) error {
	n := 0
	for i := range s.Rows {
		if s.Rows[i].Segmented {
			n = max(n, d.geo.KVHeads*d.geo.Blocks(len(d.of[i].tokens)))
		}
	}
	if n = max(n, len(s.Rows)); n <= len(d.order) {
		return nil
	}
	n += n / spareShare
	if err := d.grow(&d.scratch.ordered, int64(n)*4, "numbers in order"); err != nil {
		return err
	}
	d.order = make([]int32, n)
	for i := range d.order {
		d.order[i] = int32(i)
	}
	words, at, err := d.stage.note((n + 1) / 2)
	if err != nil {
		return err
	}
	copy(unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(words))), n), d.order)
	return d.stage.copyUp(d.scratch.ordered.at, at, int64(n)*4, d.stream)
}

type need struct {
	b     *buffer
	bytes int64
	what  string
}

// needs says how large the buffers of a step are.
func (b *scratch) needs(md *weights.Config, tokens, decodes, sampled int) []need {
	slice := min(tokens, mlpSlice+mlpMore)
	wide := int64(md.HeadsQ * md.HeadDim)
	return []need{
		{&b.x[0], int64(tokens) * int64(md.Hidden) * 2, "hidden state"},
		{&b.x[1], int64(tokens) * int64(md.Hidden) * 2, "hidden state"},
		{&b.h, int64(tokens) * int64(md.Hidden) * 2, "normed state"},
		{&b.qkv, int64(tokens) * int64((md.HeadsQ+2*md.HeadsKV)*md.HeadDim) * 2, "Q, K and V"},
		{&b.attn, int64(tokens) * wide * 2, "attention output"},
		{&b.gateUp, int64(slice) * int64(2*md.FFN) * 2, "gate and up"},
		{&b.act, int64(slice) * int64(md.FFN) * 2, "activation"},
		{&b.q, int64(decodes) * wide * 2, "queries"},
		{&b.logits, int64(sampled) * int64(md.Vocab) * 2, "logits"},
		{&b.picked, int64(sampled) * 4, "tokens"},
	}
}

// spareShare is the part of its size that a buffer gets beyond it, so that it grows seldom.
const spareShare = 4

func withSpare(bytes int64) int64 { return (bytes + bytes/spareShare + 255) / 256 * 256 }

// grow gives a buffer at least the given bytes; its contents are lost. The GPU is idle, or only reads what it was given before.
func (d *Device) grow(b *buffer, bytes int64, what string) error {
	if b.bytes >= bytes {
		return nil
	}
	if b.bytes > 0 {
		if err := d.m.StreamSync(d.stream); err != nil {
			return err
		}
		if err := d.m.DeviceFree(b.at); err != nil {
			return err
		}
	}
	bytes = withSpare(bytes)
	b.bytes = 0
	at, err := d.m.DeviceAlloc(bytes)
	if err != nil {
		return fmt.Errorf("%s of %s: %w", what, gib(bytes), err)
	}
	d.grown++
	b.at, b.bytes = at, bytes
	return nil
}

// growZeroed is grow for memory that kernels want zeroed once.
func (d *Device) growZeroed(b *buffer, bytes int64, what string) error {
	if b.bytes >= bytes {
		return nil
	}
	if err := d.grow(b, bytes, what); err != nil {
		return err
	}
	return d.m.Memset(&cuda.MemsetArgs{Dst: b.at, Bytes: b.bytes}, d.stream)
}

func (s *scratch) close(m Machine) error {
	for _, b := range []*buffer{&s.x[0], &s.x[1], &s.h, &s.qkv, &s.attn, &s.gateUp, &s.act, &s.q, &s.scores, &s.first, &s.list, &s.count, &s.zeroed, &s.logits, &s.picked, &s.ordered} {
		if b.bytes > 0 {
			if err := m.DeviceFree(b.at); err != nil {
				return err
			}
			b.bytes = 0
		}
	}
	return nil
}
