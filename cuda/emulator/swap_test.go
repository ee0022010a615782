package emulator

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/reference"
)

// swapBatch is requests that decode on the machine, and what a buffer of each should do.
type swapBatch struct {
	*fixture
	args    cuda.SwapInArgs
	context []int32
	want    []*reference.HotBuffer
	state   []cuda.Ptr
	pages   []cuda.HostMemory // of each request
}

const swapLayer = 48 // bytes of a page before the layer's rows

// newSwapBatch has requests of the given contexts, whose rows are token by token on the host.
// Buffers begin with the tokens that are within their slots.
func newSwapBatch(f *fixture, context []int32, stride, slots, row int) *swapBatch {
	const pageTokens, most = 16, 400
	b := &swapBatch{fixture: f, context: context, args: cuda.SwapInArgs{
		Batch: int32(len(context)), Stride: int32(stride), Slots: int32(slots), RowBytes: int32(row),
		PageStride: most / pageTokens, PageTokens: pageTokens, Offset: swapLayer,
	}}
	var pages, buffers []cuda.Ptr
	for r, n := range context {
		b.want = append(b.want, reference.NewHotBuffer(slots, min(slots, int(n))))
		b.state = append(b.state, upload(f, append(slices.Clone(b.want[r].Token), b.want[r].Order()...)))
		memory := f.host(most / pageTokens * (swapLayer + pageTokens*row))
		b.pages = append(b.pages, memory)
		for i := range most / pageTokens {
			pages = append(pages, memory.Ptr()+cuda.Ptr(i*(swapLayer+pageTokens*row)))
		}
		rows := make([]byte, slots*row)
		for t := range int(n) {
			copy(b.host(r, t), rowOf(r, t, row))
			if t < slots {
				copy(rows[t*row:], rowOf(r, t, row))
			}
		}
		buffers = append(buffers, upload(f, rows))
	}
	b.args.Page, b.args.Buffer, b.args.State = upload(f, pages), upload(f, buffers), upload(f, b.state)
	b.args.Slot, b.args.Misses = f.device(4*len(context)*stride), f.device(4*len(context))
	return b
}

// rowOf is a token's row, unlike all others.
func rowOf(request, token, bytes int) []byte {
	row := make([]byte, bytes)
	for i := range row {
		row[i] = byte(token ^ token>>8*31 ^ request*77 ^ i*13)
	}
	return row
}

// host is a token's row in host memory.
func (b *swapBatch) host(request, token int) []byte {
	tokens, row := int(b.args.PageTokens), int(b.args.RowBytes)
	at := token/tokens*(swapLayer+tokens*row) + swapLayer + token%tokens*row
	return b.pages[request].Bytes()[at : at+row]
}

// step appends a token to each request and swaps in the lists.
func (b *swapBatch) step(lists [][]int32) {
	b.t.Helper()
	row, stride := int(b.args.RowBytes), int(b.args.Stride)
	list, count, fresh := make([]int32, len(lists)*stride), []int32{}, []byte{}
	for r, l := range lists {
		b.context[r]++
		copy(list[r*stride:], l)
		count = append(count, int32(len(l)))
		fresh = append(fresh, rowOf(r, int(b.context[r]-1), row)...)
	}
	b.args.List, b.args.Count = upload(b.fixture, list), upload(b.fixture, count)
	b.args.Context, b.args.Fresh = upload(b.fixture, b.context), upload(b.fixture, fresh)
	b.must(b.Launch(&b.args, 0))
	b.must(b.DeviceSync())
	got, misses := download[int32](b.fixture, b.args.Slot, len(list)), download[int32](b.fixture,
		b.args.Misses, len(lists))
	for r, l := range lists {
		b.check(r, l, got[r*stride:][:len(l)], int(misses[r]))
	}
}

// check compares a request with the reference, and every slot's row with its token's.
func (b *swapBatch) check(r int, list, slots []int32, misses int) {
	b.t.Helper()
	n, row, newest := int(b.args.Slots), int(b.args.RowBytes), b.context[r]-1
	state := download[int32](b.fixture, b.state[r], 2*n)
	if int(b.context[r]) <= n {
		if !slices.Equal(slots, list) || misses != 0 {
			b.t.Fatalf("request %d fits: slots %v of %v, %d misses", r, slots, list, misses)
		}
		b.want[r].Token[newest] = newest
		to := pinned(b.fixture, append(slices.Clone(b.want[r].Token), b.want[r].Order()...))
		b.must(b.Launch(&cuda.MemcpyArgs{Dst: b.state[r], Src: to.Ptr(), Bytes: int64(8 * n)}, 0))
	} else {
		want, _, loads := b.want[r].Swap(list, newest)
		if !slices.Equal(slots, want) || misses != len(loads) {
			b.t.Fatalf("request %d: slots %v, %d misses; want %v, %d", r, slots, misses, want, len(loads))
		}
		if !slices.Equal(state[:n], b.want[r].Token) || !slices.Equal(state[n:], b.want[r].Order()) {
			b.t.Fatalf("request %d: state %v, want %v in order %v", r, state, b.want[r].Token,
				b.want[r].Order())
		}
	}
	at := download[cuda.Ptr](b.fixture, b.args.Buffer, len(b.context))[r]
	rows := download[byte](b.fixture, at, n*row)
	for slot, token := range b.want[r].Token {
		if token >= 0 && !bytes.Equal(rows[slot*row:][:row], rowOf(r, int(token), row)) {
			b.t.Fatalf("request %d: slot %d has not the row of token %d", r, slot, token)
		}
	}
	if !bytes.Equal(b.host(r, int(newest)), rowOf(r, int(newest), row)) {
		b.t.Fatalf("request %d: token %d is not saved", r, newest)
	}
}

// draw selects k of a request's tokens, most of them as before.
func (b *swapBatch) draw(r, k int, last []int32) []int32 {
	n := int(b.context[r]) + 1
	list := slices.DeleteFunc(slices.Clone(last), func(int32) bool { return b.r.IntN(8) == 0 })
	for len(list) < min(k, n) {
		if t := int32(b.r.IntN(n)); !slices.Contains(list, t) {
			list = append(list, t)
		}
	}
	b.r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// Slots, order of use, rows in the buffer and on the host are the reference's step after step, of
// requests that fit, that outgrow their slots and that never fitted.
func TestSwapInIsLRU(t *testing.T) {
	for _, c := range []struct{ stride, slots, row int }{{8, 24, 16}, {16, 17, 48}, {5, 40, 656}} {
		b := newSwapBatch(newFixture(t, Config{}), []int32{3, int32(c.slots) - 4, 200}, c.stride, c.slots,
			c.row)
		lists := make([][]int32, len(b.context))
		for step := range 40 {
			for r := range lists {
				k := c.stride
				if step%7 == 3 {
					k = b.r.IntN(c.stride + 1)
				}
				lists[r] = b.draw(r, k, lists[r][:min(len(lists[r]), k)])
			}
			b.step(lists)
		}
	}
}

func TestSwapInRefusesBadLists(t *testing.T) {
	for _, list := range [][]int32{{4, 4}, {-1}, {31}} {
		b := newSwapBatch(newFixture(t, Config{}), []int32{30}, 4, 8, 16)
		b.args.List, b.args.Count = upload(b.fixture, append(list, 0, 0, 0)), upload(b.fixture,
			[]int32{int32(len(list))})
		b.args.Context, b.args.Fresh = upload(b.fixture, []int32{30}), b.device(16)
		err := errors.Join(b.Launch(&b.args, 0), b.DeviceSync())
		faults(t, "bad list", err, "List", "request 0 lists token")
	}
	b := newSwapBatch(newFixture(t, Config{}), []int32{30}, 8, 9, 16)
	b.args.Slots = 8
	if err := b.Launch(&b.args, 0); err == nil {
		t.Error("as many slots as are selected hold no newest token")
	}
}
