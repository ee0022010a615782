package latent

import (
	"unsafe"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/live/mem"
)

// rows is the batch of a step in the layout of the kernels: one row per token, decodes first.
// Arrays are written on the host and uploaded together.
type rows struct {
	tokens, decodes, sampled int
	most                     int // tokens of the longest context

	ids, position, context, emits cuda.Ptr // int32 [tokens], emits [sampled]
	layers                        []layerRows
	// For decodes with hot buffers: pages [decodes][pageStride]; and the initial tokens of a buffer,
	// either none or all in order, int32 [slots].
	page                  cuda.Ptr
	pageStride            int
	emptyState, fullState cuda.Ptr

	words  []uint64 // on the host
	used   int
	pinned cuda.HostMemory
	held   int64 // bytes of it
	device mem.Buffer
}

// layerRows are addresses: the destinations of a token's row and key, the start of the rows and
// keys that it may attend to, and the buffers of decodes.
type layerRows struct {
	rowTo, keyTo, kv, key cuda.Ptr // [tokens]
	buffer, state         cuda.Ptr // [decodes]
}

// array returns room for n values on the host, and its address on the device.
func array[T int32 | cuda.Ptr](r *rows, n int) ([]T, cuda.Ptr) {
	var one T
	at := r.used
	r.used += (n*int(unsafe.Sizeof(one)) + 7) / 8
	if n == 0 {
		return nil, r.device.At
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&r.words[at])), n), r.device.At + cuda.Ptr(8*at)
}

// place writes the arrays of a step; memory grows here.
func (d *Device) place() {
	r, s := &d.rows, &d.shape
	r.tokens, r.decodes, r.sampled, r.most = 0, 0, 0, 0
	for i := range d.step.Rows {
		row := &d.step.Rows[i]
		r.tokens += row.To - row.From
		r.most = max(r.most, row.To)
		if row.Decode {
			r.decodes++
		}
		if row.Emits {
			r.sampled++
		}
	}
	r.pageStride = d.cfg.Geometry.Blocks(r.most)
	words := 3*(r.tokens/2+1) + r.sampled + s.Layers*(4*r.tokens+2*r.decodes) +
		r.decodes*r.pageStride + d.slots + 4
	if len(r.words) < words {
		r.words, d.grew = make([]uint64, words+words/4), true
	}
	d.grow(&r.device, 8*words, "a step's arrays")
	d.size()
	if d.err != nil {
		return
	}
	r.used = 0
	d.placeTokens()
	r.layers = r.layers[:0]
	for layer := range s.Layers {
		r.layers = append(r.layers, d.placeLayer(layer))
	}
	if d.slots > 0 {
		d.placeBuffers()
	}
	if bytes := int64(8 * r.used); r.held < bytes {
		if r.held > 0 {
			d.fail(d.m.HostFree(r.pinned))
		}
		var err error
		r.held, d.grew = bytes+bytes/4, true
		r.pinned, err = d.m.HostAlloc(r.held, cuda.DriverPages)
		d.fail(err)
	}
}

func (d *Device) placeTokens() {
	r := &d.rows
	var ids, position, context, emits []int32
	ids, r.ids = array[int32](r, r.tokens)
	position, r.position = array[int32](r, r.tokens)
	context, r.context = array[int32](r, r.tokens)
	emits, r.emits = array[int32](r, r.sampled)
	at, sampled := 0, 0
	for i := range d.step.Rows {
		row := &d.step.Rows[i]
		for p := row.From; p < row.To; p++ {
			ids[at], position[at], context[at] = d.batch[i].tokens[p], int32(p), int32(p+1)
			at++
		}
		if row.Emits {
			emits[sampled] = int32(at - 1)
			sampled++
		}
	}
}

func (d *Device) placeLayer(layer int) (l layerRows) {
	r := &d.rows
	var rowTo, keyTo, kv, key []cuda.Ptr
	rowTo, l.rowTo = array[cuda.Ptr](r, r.tokens)
	keyTo, l.keyTo = array[cuda.Ptr](r, r.tokens)
	kv, l.kv = array[cuda.Ptr](r, r.tokens)
	key, l.key = array[cuda.Ptr](r, r.tokens)
	at := 0
	for i := range d.step.Rows {
		row, q := &d.step.Rows[i], d.batch[i]
		for p := row.From; p < row.To; p++ {
			keyTo[at], key[at] = d.key(q, layer, p), d.key(q, layer, 0)
			if d.slots > 0 && row.Decode { // the swap-in kernel brings it to its slot and to the host
				rowTo[at] = d.scratch.fresh.At + cuda.Ptr(i*d.shape.RowBytes())
				kv[at] = d.buffer(q, layer)
			} else {
				rowTo[at], kv[at] = d.row(q, layer, p), d.row(q, layer, 0)
			}
			at++
		}
	}
	if d.slots > 0 {
		var buffer, state []cuda.Ptr
		buffer, l.buffer = array[cuda.Ptr](r, r.decodes)
		state, l.state = array[cuda.Ptr](r, r.decodes)
		for i := range buffer {
			buffer[i] = d.buffer(d.batch[i], layer)
			state[i] = d.batch[i].state.At + cuda.Ptr(layer*2*d.slots*4)
		}
	}
	return l
}

func (d *Device) buffer(r *request, layer int) cuda.Ptr {
	return r.buffers.At + cuda.Ptr(layer*d.slots*d.shape.RowBytes())
}

func (d *Device) placeBuffers() {
	r := &d.rows
	var pages []cuda.Ptr
	pages, r.page = array[cuda.Ptr](r, r.decodes*r.pageStride)
	for i := range r.decodes {
		for j, p := range d.batch[i].pages {
			pages[i*r.pageStride+j] = d.dram.Block(p, 0)
		}
	}
	empty, full := []int32(nil), []int32(nil)
	empty, r.emptyState = array[int32](r, d.slots)
	full, r.fullState = array[int32](r, d.slots)
	for i := range empty {
		empty[i], full[i] = -1, int32(i)
	}
}

// send uploads the arrays; the pinned memory is free, as Finish has waited.
func (d *Device) send() {
	r := &d.rows
	if d.err != nil || r.used == 0 {
		return
	}
	copy(cuda.Slice[uint64](r.pinned), r.words[:r.used])
	d.launch(&cuda.MemcpyArgs{Dst: r.device.At, Src: r.pinned.Ptr(), Bytes: int64(8 * r.used)})
}
