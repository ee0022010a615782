package calibrate

import (
	"github.com/sparseserve/sparseserve/cuda"
)

// Setup of hot buffers: selected tokens per request, and tokens per page of host memory.
const (
	swapSelected   = 2048
	swapPageTokens = 64
)

// swapPlan is the selection of every request of a point: fixed tokens in each call, and misses that
// return after enough calls to be evicted again.
type swapPlan struct {
	selected, misses, slots, calls int64
	context                        int64
}

func newSwapPlan(slots, misses int64) swapPlan {
	s := swapPlan{selected: swapSelected, misses: misses, slots: slots, calls: 1}
	if slots <= swapSelected { // of a test
		s.selected = slots / 2
	}
	if misses > 0 {
		s.calls = (s.rest()+misses-1)/misses + 2
	}
	s.context = max(s.fixed()+max(s.calls*misses, s.rest()), slots) + 1
	return s
}

// fixed is the number of tokens selected in every call; rest is the number of slots for other
// tokens, without the newest token's slot.
func (s *swapPlan) fixed() int64 { return s.selected - s.misses }
func (s *swapPlan) rest() int64  { return s.slots - s.fixed() - 1 }

// list returns the selection of a call.
func (s *swapPlan) list(call int64) []int32 {
	list := counted[int32](s.fixed())
	for i := range s.misses {
		list = append(list, int32(s.fixed()+call*s.misses+i))
	}
	return list
}

// state returns a buffer as earlier calls would leave it: slots hold the fixed tokens, the newest
// token and the last loaded tokens, which are the oldest in LRU order.
func (s *swapPlan) state() []int32 {
	token, order := make([]int32, s.slots), make([]int32, 0, s.slots)
	for i := range s.fixed() + 1 {
		token[i] = int32(i)
	}
	token[s.fixed()] = int32(s.context - 1)
	others := max(s.calls*s.misses, s.rest())
	for i := range s.rest() {
		slot := s.fixed() + 1 + i
		token[slot] = int32(s.fixed() + others - s.rest() + i)
		order = append(order, int32(slot))
	}
	order = append(order, counted[int32](s.fixed()+1)...)
	return append(token, order...)
}

// setupSwap prepares sequential calls of a layer. Each has the misses of its point.
func (g *gpuRun) setupSwap(p Point) *work {
	plan := newSwapPlan(p.At("slots"), p.At("misses"))
	requests, row := p.At("requests"), p.At("row_bytes")
	pages := (plan.context + swapPageTokens - 1) / swapPageTokens
	block := swapPageTokens * row
	pool := max(requests*pages*block, 8*mib)
	from := g.scattered(requests*pages, block, min(2*pool, basePool*mib))
	var buffers, states []cuda.Ptr
	for range requests {
		buffers = append(buffers, g.random(plan.slots*row/2))
		states = append(states, upload(g, plan.state()))
	}
	context, count := make([]int32, requests), make([]int32, requests)
	for i := range context {
		context[i], count[i] = int32(plan.context), int32(plan.selected)
	}
	a := cuda.SwapInArgs{
		Batch: int32(requests), Stride: int32(plan.selected), Slots: int32(plan.slots),
		RowBytes: int32(row), PageStride: int32(pages), PageTokens: swapPageTokens,
		Count: upload(g, count), Context: upload(g, context), Page: upload(g, from.ptrs),
		Buffer: upload(g, buffers), State: upload(g, states), Fresh: g.random(requests * row / 2),
		Slot: g.poisoned(4 * requests * plan.selected), Misses: g.poisoned(4 * requests),
	}
	t := &work{}
	for call := range plan.calls {
		one := a
		list := plan.list(call)
		var lists []int32
		for range requests {
			lists = append(lists, list...)
		}
		one.List = upload(g, lists)
		t.rotation = append(t.rotation, []cuda.Operation{&one})
	}
	t.verify = func() { g.checkSwap(&plan, t.rotation[0][0].(*cuda.SwapInArgs), buffers, from) }
	return t
}

// checkSwap runs the first call and checks one request's slots and loaded rows.
func (g *gpuRun) checkSwap(plan *swapPlan, a *cuda.SwapInArgs, buffers []cuda.Ptr,
	from hostBlocks) {
	g.launch(a)
	r := g.r.Int64N(int64(a.Batch))
	slots := download[int32](g, a.Slot+cuda.Ptr(4*r*plan.selected), plan.selected)
	misses := download[int32](g, a.Misses+cuda.Ptr(4*r), 1)
	if g.err == nil && int64(misses[0]) != plan.misses {
		g.fail("request %d misses %d rows, not %d", r, misses[0], plan.misses)
	}
	row, pages := int64(a.RowBytes), int64(a.PageStride)
	for i, slot := range slots {
		want := int64(i)
		if want >= plan.fixed() { // the oldest slots, in order
			want++
		}
		if g.err == nil && int64(slot) != want {
			g.fail("request %d: token %d of the list is in slot %d, not %d", r, i, slot, want)
		}
	}
	if plan.misses == 0 {
		return
	}
	for _, i := range g.drawn(plan.misses) {
		token := plan.fixed() + i
		_, page := g.pool.at(from.offsets[r*pages+token/swapPageTokens])
		at := token % swapPageTokens * row
		g.sameBytes(buffers[r]+cuda.Ptr((token+1)*row), page[at:at+row], "row of token %d", token)
	}
}
