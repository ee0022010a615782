package emulator

import (
	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/reference"
)

// blocks finds the KV blocks of units in a pool: by the slots given with a list
// [units][listStride], otherwise through a table, [units][stride] of slots or [requests][stride] of
// pages with one slot per KV head.
type blocks struct {
	*access
	pool, table, slot               cuda.Ptr
	stride, listStride, tokens, dim int
	pageSlots                       int // 0: the table holds slots
}

func (p *blocks) slotOf(unit, block, entry int) int {
	switch {
	case p.slot != 0:
		return int(*at[int32](p.access, "Slot", p.slot, unit*p.listStride+entry))
	case p.pageSlots > 0:
		return int(*at[int32](p.access, "Table", p.table,
			unit/p.pageSlots*p.stride+block))*p.pageSlots + unit%p.pageSlots
	}
	return int(*at[int32](p.access, "Table", p.table, unit*p.stride+block))
}

// read returns a unit's keys and values of a logical block, which is an entry of the unit's list,
// in a context of context tokens: each [n][dim].
func (p *blocks) read(unit, block, entry, context int) (keys, values []float64) {
	n := min(p.tokens, context-block*p.tokens)
	slot, size := p.slotOf(unit, block, entry), p.tokens*p.dim // size: values of K, and of V
	return p.tensor("Pool", p.pool, 2*slot*size, n*p.dim), p.tensor("Pool", p.pool, (2*slot+1)*size,
		n*p.dim)
}

// contextOf returns the tokens and blocks of a request.
func contextOf(m *access, context cuda.Ptr, request, blockTokens int) (tokens, blocks int) {
	tokens = int(*at[int32](m, "Context", context, request))
	if tokens < 0 {
		m.fault("Context", context, 4, "request %d has %d tokens", request, tokens)
	}
	return tokens, (tokens + blockTokens - 1) / blockTokens
}

// blockLists is an argument with a list of logical blocks for each unit.
type blockLists struct {
	arg         string
	list, count cuda.Ptr
	stride      int
}

// of returns unit's list, whose blocks are all within the context.
func (l blockLists) of(m *access, unit, blocks int) []int32 {
	n := int(*at[int32](m, "Count", l.count, unit))
	if n < 0 || n > l.stride {
		m.fault("Count", l.count, 4, "unit %d counts %d blocks in a list of %d", unit, n, l.stride)
	}
	chosen := view[int32](m, l.arg, l.list, unit*l.stride, n)
	for _, i := range chosen {
		if i < 0 || int(i) >= blocks {
			m.fault(l.arg, l.list, 4, "unit %d lists block %d of %d", unit, i, blocks)
		}
	}
	return chosen
}

func checkDecodeShape(m *access, d *cuda.DecodeArgs) {
	m.need(d.Batch > 0, "batch > 0")
	m.paged(d.HeadsQ, d.HeadsKV, d.HeadDim, d.BlockTokens)
	m.need(d.Splits >= 0 && d.Splits <= 256, "0 to 256 splits")
}

// splits is the number of parts that share a unit's work. The emulator does not split, but requires
// the workspace of a large GPU, where each part has four blocks.
func splits(d *cuda.DecodeArgs) int64 {
	if d.Splits > 0 {
		return int64(d.Splits)
	}
	return max(1, min(64, int64(d.MaxBlocks+3)/4))
}

// shared reports whether CTAs may share a unit. In a dense batch CTAs share its blocks across
// units.
func shared(d *cuda.DecodeArgs) bool { return d.List == 0 || splits(d) > 1 }

// workspaceBytes returns the workspace's size and the size of each CTA's record in it, which begins
// with a count of arrivals and holds two partial results.
func workspaceBytes(d *cuda.DecodeArgs) (all, record int64) {
	record = 4 * (4 + 2*int64(d.HeadsQ/d.HeadsKV)*(2+int64(d.HeadDim)))
	return int64(d.Batch) * int64(d.HeadsKV) * splits(d) * record, record
}

func decode(m *access, d *cuda.DecodeArgs) {
	checkDecodeShape(m, d)
	m.need((d.List == 0) == (d.Count == 0), "both list and count, or none")
	m.need(d.Slot == 0 || d.List != 0, "a list with slots")
	s := reference.Shape{Batch: int(d.Batch), HeadsQ: int(d.HeadsQ), HeadsKV: int(d.HeadsKV),
		Dim: int(d.HeadDim)}
	kv := blocks{access: m, pool: d.Pool, table: d.Table, slot: d.Slot, stride: int(d.TableStride),
		listStride: int(d.ListStride), tokens: int(d.BlockTokens), dim: s.Dim}
	if d.Pages != 0 {
		kv.pageSlots = s.HeadsKV
	}
	if shared(d) {
		bytes, record := workspaceBytes(d)
		for at := int64(0); at < bytes; at += record {
			m.zeroed("Workspace", d.Workspace+cuda.Ptr(at), record, 4)
		}
	}
	q, out := m.tensor("Q", d.Q, 0, s.Batch*s.HeadsQ*s.Dim), m.halves("Out", d.Out, 0,
		s.Batch*s.HeadsQ*s.Dim)
	var lse []float32
	if d.LSE != 0 {
		lse = view[float32](m, "LSE", d.LSE, 0, s.Batch*s.HeadsQ)
	}
	for unit := range s.Units() {
		tokens, all := contextOf(m, d.Context, unit/s.HeadsKV, kv.tokens)
		var chosen []int32 // nil: all
		attended := all
		if d.List != 0 {
			chosen = blockLists{"List", d.List, d.Count, int(d.ListStride)}.of(m, unit, all)
			attended = len(chosen)
		}
		if attended > int(d.MaxBlocks) {
			m.fault("Context", d.Context, 4, "unit %d attends to %d blocks, MaxBlocks is %d", unit,
				attended, d.MaxBlocks)
		}
		heads := newSoftmaxes(s)
		for entry := range attended {
			block := entry
			if d.List != 0 {
				block = int(chosen[entry])
			}
			keys, values := kv.read(unit, block, entry, tokens)
			for g := range heads {
				heads[g].Attend(q[(unit*s.Group()+g)*s.Dim:][:s.Dim], keys, values,
					float64(d.Scale))
			}
		}
		row := make([]float64, s.Dim)
		for g := range heads {
			head := unit*s.Group() + g
			sum := heads[g].Result(row)
			store(out[head*s.Dim:], row)
			if lse != nil {
				lse[head] = float32(sum)
			}
		}
	}
}

// newSoftmaxes returns a group's empty softmaxes.
func newSoftmaxes(s reference.Shape) []reference.Softmax {
	heads := make([]reference.Softmax, s.Group())
	for g := range heads {
		heads[g] = reference.NewSoftmax(s.Dim)
	}
	return heads
}

// zeroed checks scratch memory whose counters are zero between launches.
func (m *access) zeroed(arg string, p cuda.Ptr, bytes, counters int64) {
	for i, b := range m.bytes(arg, p, 0, bytes)[:counters] {
		if b != 0 {
			m.fault(arg, p+cuda.Ptr(i), 1,
				"not zero: scratch memory is to be zeroed once after it is allocated")
		}
	}
}

func checkPrefill(m *access, p *cuda.PrefillArgs) {
	m.need(p.QTokens >= 0 && p.Prefix >= 0, "tokens >= 0")
	m.heads(p.HeadsQ, p.HeadsKV, p.HeadDim)
	for _, stride := range []int64{p.QTokenStride, p.QHeadStride, p.KTokenStride, p.KHeadStride,
		p.VTokenStride, p.VHeadStride, p.OutTokenStride, p.OutHeadStride} {
		m.need(stride%8 == 0, "strides that are multiples of 8")
	}
	m.need(p.Table == 0 || p.BlockTokens > 0 && p.BlockTokens%16 == 0 && p.BlockTokens <= 256,
		"blocks of a multiple of 16 tokens, at most 256")
}

func prefill(m *access, p *cuda.PrefillArgs) {
	r := prefillOf(m, p, true)
	out := r.Run()
	for i := range int(p.QTokens) {
		for head := range int(p.HeadsQ) {
			store(m.halves("Out", p.Out, i*int(p.OutTokenStride)+head*int(p.OutHeadStride), r.Dim),
				out[(i*r.HeadsQ+head)*r.Dim:][:r.Dim])
		}
	}
}

// prefillOf returns a prefill's operands, from tensors or from blocks; values: V too.
func prefillOf(m *access, p *cuda.PrefillArgs, values bool) reference.Prefill {
	checkPrefill(m, p)
	r := reference.Prefill{Shape: reference.Shape{Batch: 1, HeadsQ: int(p.HeadsQ),
		HeadsKV: int(p.HeadsKV), Dim: int(p.HeadDim)}, QTokens: int(p.QTokens),
		Prefix: int(p.Prefix), Scale: float64(p.Scale)}
	rows := func(arg string, base cuda.Ptr, tokens, heads int, token, head int64) (all []float64) {
		for t := range tokens {
			for h := range heads {
				all = append(all, m.tensor(arg, base, t*int(token)+h*int(head), r.Dim)...)
			}
		}
		return all
	}
	total := r.Prefix + r.QTokens
	r.Q = rows("Q", p.Q, r.QTokens, r.HeadsQ, p.QTokenStride, p.QHeadStride)
	if p.Table == 0 {
		r.K = rows("K", p.K, total, r.HeadsKV, p.KTokenStride, p.KHeadStride)
		if values {
			r.V = rows("V", p.V, total, r.HeadsKV, p.VTokenStride, p.VHeadStride)
		}
		return r
	}
	kv := blocks{access: m, pool: p.Pool, table: p.Table, stride: int(p.TableStride),
		tokens: int(p.BlockTokens), dim: r.Dim}
	r.K, r.V = make([]float64, total*r.HeadsKV*r.Dim), make([]float64, total*r.HeadsKV*r.Dim)
	for head := range r.HeadsKV {
		for first := 0; first < total; first += kv.tokens {
			keys, values := kv.read(head, first/kv.tokens, 0, total)
			for t := range len(keys) / r.Dim {
				at := ((first+t)*r.HeadsKV + head) * r.Dim
				copy(r.K[at:], keys[t*r.Dim:][:r.Dim])
				copy(r.V[at:], values[t*r.Dim:][:r.Dim])
			}
		}
	}
	return r
}
