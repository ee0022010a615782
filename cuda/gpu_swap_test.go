//go:build gpu

package cuda

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/cuda/reference"
)

// gpuSwap is requests with hot buffers on the GPU, and what each buffer should do.
type gpuSwap struct {
	*gpu
	args           SwapInArgs
	context        []int32
	want           []*reference.HotBuffer
	state, buffers []Ptr
	pages          []HostMemory
}

const swapOffset = 4096

func (g *gpu) swapBatch(context []int32, stride, slots, row, most int) *gpuSwap {
	const pageTokens = 64
	b := &gpuSwap{gpu: g, context: context, args: SwapInArgs{
		Batch: int32(len(context)), Stride: int32(stride), Slots: int32(slots), RowBytes: int32(row),
		PageStride: int32(most/pageTokens + 1), PageTokens: pageTokens, Offset: swapOffset,
	}}
	var pages []Ptr
	for r, n := range context {
		b.want = append(b.want, reference.NewHotBuffer(slots, min(slots, int(n))))
		b.state = append(b.state, upload(g, stateOf(b.want[r])))
		bytes := int64(swapOffset + pageTokens*row)
		m := g.host(bytes*int64(b.args.PageStride), HostPages(r%2))
		g.noise(m.Bytes())
		b.pages = append(b.pages, m)
		for i := range int64(b.args.PageStride) {
			pages = append(pages, m.Ptr()+Ptr(i*bytes))
		}
		rows := make([]byte, slots*row)
		for t := range min(slots, int(n)) {
			copy(rows[t*row:], b.row(r, t))
		}
		b.buffers = append(b.buffers, upload(g, rows))
	}
	b.args.Page, b.args.Buffer, b.args.State = upload(g, pages), upload(g, b.buffers),
		upload(g, b.state)
	b.args.Slot = g.device(int64(4 * len(context) * stride))
	b.args.Misses = g.device(int64(4 * len(context)))
	return b
}

// stateOf is a buffer's state as the kernel keeps it.
func stateOf(b *reference.HotBuffer) []int32 { return append(slices.Clone(b.Token), b.Order()...) }

// row is a token's row on the host.
func (b *gpuSwap) row(request, token int) []byte {
	tokens, row := int(b.args.PageTokens), int(b.args.RowBytes)
	at := token/tokens*(swapOffset+tokens*row) + swapOffset + token%tokens*row
	return b.pages[request].Bytes()[at : at+row]
}

// drawTokens selects k tokens of a context of n, most of them as before.
func (g *gpu) drawTokens(n, k int, last []int32) []int32 {
	in := make([]bool, n)
	list := slices.DeleteFunc(slices.Clone(last), func(int32) bool { return g.r.IntN(12) == 0 })
	list = list[:min(len(list), k)]
	for _, t := range list {
		in[t] = true
	}
	for len(list) < min(k, n) {
		if t := g.r.IntN(n); !in[t] {
			list, in[t] = append(list, int32(t)), true
		}
	}
	g.r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// step appends a token to each request, swaps in the lists and compares.
func (b *gpuSwap) step(what string, lists [][]int32) {
	b.t.Helper()
	row, stride, n := int(b.args.RowBytes), int(b.args.Stride), int(b.args.Slots)
	list, count := make([]int32, len(lists)*stride), []int32{}
	fresh := make([]byte, len(lists)*row)
	b.noise(fresh)
	for r, l := range lists {
		b.context[r]++
		copy(list[r*stride:], l)
		count = append(count, int32(len(l)))
	}
	a := b.args
	a.List, a.Count, a.Context = upload(b.gpu, list), upload(b.gpu, count), upload(b.gpu, b.context)
	a.Fresh = upload(b.gpu, fresh)
	b.must(b.Launch(&a, 0))
	got := download[int32](b.gpu, a.Slot, len(list))
	misses := download[int32](b.gpu, a.Misses, len(lists))
	for r, l := range lists {
		slots, newest, loads := l, b.context[r]-1, 0
		if int(b.context[r]) <= n {
			b.want[r].Token[newest] = newest
			b.must(Upload(b.Session, b.state[r], stateOf(b.want[r])))
		} else {
			var loaded []int32
			slots, _, loaded = b.want[r].Swap(l, newest)
			loads = len(loaded)
		}
		if !slices.Equal(got[r*stride:][:len(l)], slots) || int(misses[r]) != loads {
			b.t.Fatalf("%s: request %d: slots differ, or %d misses for %d", what, r, misses[r], loads)
		}
		state := download[int32](b.gpu, b.state[r], 2*n)
		if !slices.Equal(state[:n], b.want[r].Token) || !slices.Equal(state[n:], b.want[r].Order()) {
			b.t.Fatalf("%s: request %d: tokens or their order differ", what, r)
		}
		if !bytes.Equal(b.row(r, int(newest)), fresh[r*row:][:row]) {
			b.t.Fatalf("%s: request %d: the newest row is not saved", what, r)
		}
		rows := download[byte](b.gpu, b.buffers[r], n*row)
		for slot, token := range b.want[r].Token {
			if token >= 0 && !bytes.Equal(rows[slot*row:][:row], b.row(r, int(token))) {
				b.t.Fatalf("%s: request %d: slot %d has not the row of token %d", what, r, slot, token)
			}
		}
	}
}

// Slots, order of use, rows in the buffers and on the host are the reference's, step after step.
func TestGPUSwapIn(t *testing.T) {
	onGPU(t, func(g *gpu) {
		for _, c := range []struct {
			context            []int32
			stride, slots, row int
		}{
			{[]int32{5}, 1, 2, 16},
			{[]int32{20, 90, 500}, 32, 100, 656},
			{[]int32{1000, 30, 4090, 9000}, 2048, 4096, 1152},
			{[]int32{9000, 9000}, 2048, 6144, 656},
			{[]int32{20000}, 4096, 16384, 1152},
		} {
			most := int(slices.Max(c.context)) + 20
			b := g.swapBatch(c.context, c.stride, c.slots, c.row, most)
			lists := make([][]int32, len(c.context))
			for step := range 12 {
				for r := range lists {
					k := c.stride
					if step%5 == 4 {
						k = g.r.IntN(c.stride + 1)
					}
					lists[r] = g.drawTokens(int(b.context[r])+1, k, lists[r])
				}
				b.step(fmt.Sprintf("%d of %d slots, step %d", c.stride, c.slots, step), lists)
			}
		}
	})
}
