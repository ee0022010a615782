package emulator

import (
	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/reference"
)

func swapIn(m *access, a *cuda.SwapInArgs) {
	m.need(a.Stride > 0 && a.Stride <= cuda.TopKMax, "lists of at most 4096 tokens")
	m.need(a.Slots > a.Stride && a.Slots <= cuda.SlotsMax,
		"more slots than are selected, at most 16384")
	m.need(a.RowBytes > 0 && a.RowBytes%16 == 0 && a.RowBytes <= 1<<16,
		"rows of a multiple of 16 bytes, at most 64 KiB")
	m.need(a.PageTokens > 0 && a.Offset%16 == 0, "pages")
	for r := range int(a.Batch) {
		b := hotBuffer{access: m, args: a, request: r,
			context: int(*at[int32](m, "Context", a.Context, r)),
			rows:    *at[cuda.Ptr](m, "Buffer", a.Buffer, r)}
		b.list = view[int32](m, "List", a.List, r*int(a.Stride), int(*at[int32](m, "Count", a.Count, r)))
		b.slots = view[int32](m, "Slot", a.Slot, r*int(a.Stride), len(b.list))
		misses := at[int32](m, "Misses", a.Misses, r)
		if b.context <= int(a.Slots) { // token t is in slot t
			copy(b.slots, b.list)
			*misses = 0
			b.fresh(b.context - 1)
			continue
		}
		*misses = int32(b.swap())
	}
}

// hotBuffer is one request of a call.
type hotBuffer struct {
	*access
	args             *cuda.SwapInArgs
	request, context int
	rows             cuda.Ptr // of the buffer
	list, slots      []int32
}

// swap looks up the selected tokens' slots and loads the misses; it returns the number of misses.
func (b *hotBuffer) swap() (misses int) {
	n := int(b.args.Slots)
	state := *at[cuda.Ptr](b.access, "State", b.args.State, b.request)
	token := view[int32](b.access, "State tokens", state, 0, n)
	order := view[int32](b.access, "State order", state, n, n)
	newest := int32(b.context - 1)
	listed := map[int32]bool{}
	for _, t := range b.list {
		if listed[t] || t < 0 || t > newest {
			b.fault("List", b.args.List, 4, "request %d lists token %d of %d, or twice", b.request, t,
				b.context)
		}
		listed[t] = true
	}
	buffer := reference.HotBufferOf(token, order)
	slots, fresh, loads := buffer.Swap(b.list, newest)
	copy(b.slots, slots)
	copy(token, buffer.Token)
	copy(order, buffer.Order())
	for i, t := range b.list { // loads are in the order of the list
		if len(loads) > misses && loads[misses] == t {
			copy(b.slot(int(slots[i])), b.host(int(t)))
			misses++
		}
	}
	b.fresh(int(fresh))
	return misses
}

// fresh writes the newest token's row to its slot and to the host's memory.
func (b *hotBuffer) fresh(slot int) {
	row := b.bytes("Fresh", b.args.Fresh, int64(b.request)*int64(b.args.RowBytes),
		int64(b.args.RowBytes))
	copy(b.slot(slot), row)
	copy(b.host(b.context-1), row)
}

func (b *hotBuffer) slot(i int) []byte {
	return b.bytes("Buffer row", b.rows, int64(i)*int64(b.args.RowBytes), int64(b.args.RowBytes))
}

func (b *hotBuffer) host(token int) []byte {
	tokens := int(b.args.PageTokens)
	page := *at[cuda.Ptr](b.access, "Page", b.args.Page, b.request*int(b.args.PageStride)+token/tokens)
	return b.bytes("Page row", page, b.args.Offset+int64(token%tokens)*int64(b.args.RowBytes),
		int64(b.args.RowBytes))
}
