package emulator

import (
	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/reference"
)

func checkPSAShape(m *access, p *cuda.PSAArgs) {
	m.need(p.Batch > 0, "batch > 0")
	m.paged(p.HeadsQ, p.HeadsKV, p.HeadDim, p.BlockTokens)
}

// A query head's state between calls, in float64: the softmax's maximum and sum, log AS_min, the
// softmax's output [dim]. The heads follow psaHeader bytes that stay zero.
const (
	psaHeader = 256
	psaFixed  = 3
)

func psaStateBytes(p *cuda.PSAArgs) int64 {
	return psaHeader + int64(p.Batch)*int64(p.HeadsQ)*(psaFixed+int64(p.HeadDim))*8
}

// psaUnit is one unit's run: its blocks in order, and its progress.
type psaUnit struct {
	*reference.Progress
	order []int32
	used  int
	done  bool
}

func psa(m *access, p *cuda.PSAArgs) {
	checkPSAShape(m, p)
	m.need(p.Micro > 0 && p.First >= 0 && p.Steps > 0, "microbatches")
	m.need(p.Epsilon > 0 && p.Epsilon <= 1, "0 < epsilon <= 1")
	s := reference.Shape{
		Batch: int(p.Batch), HeadsQ: int(p.HeadsQ), HeadsKV: int(p.HeadsKV), Dim: int(p.HeadDim),
	}
	kv := blocks{
		access: m, pool: p.Pool, table: p.Table, slot: p.Slot, stride: int(p.TableStride),
		listStride: int(p.OrderStride), tokens: int(p.BlockTokens), dim: s.Dim,
	}
	m.zeroed("State", p.State, psaHeader, psaHeader)
	size := psaFixed + s.Dim // of a head's state
	state := view[float64](m, "State", p.State, psaHeader/8, s.Batch*s.HeadsQ*size)
	q := m.tensor("Q", p.Q, 0, s.Batch*s.HeadsQ*s.Dim)
	out := m.halves("Out", p.Out, 0, s.Batch*s.HeadsQ*s.Dim)
	used := view[int32](m, "Used", p.Used, 0, s.Units())
	done := view[int32](m, "Done", p.Done, 0, s.Units())
	finished, rows := 0, s.Group()*s.Dim
	for unit := range s.Units() {
		if p.First > 0 && done[unit] != 0 {
			finished++
			continue
		}
		tokens, all := contextOf(m, p.Context, unit/s.HeadsKV, kv.tokens)
		u := psaUnit{
			Progress: reference.NewProgress(s.Group(), s.Dim),
			order:    blockLists{"Order", p.Order, p.Count, int(p.OrderStride)}.of(m, unit, all),
		}
		mine := state[unit*s.Group()*size:][:s.Group()*size]
		if p.First > 0 {
			u.load(mine)
		}
		u.used = min(len(u.order), int(p.First)*int(p.Micro))
		for step := 0; step < int(p.Steps) && u.used < len(u.order) && !u.done; step++ {
			for end := min(len(u.order), u.used+int(p.Micro)); u.used < end; u.used++ {
				keys, values := kv.read(unit, int(u.order[u.used]), u.used, tokens)
				u.Add(q[unit*rows:][:rows], keys, values, float64(p.Scale))
			}
			u.done, _ = u.Enough(len(u.order)-u.used, float64(p.Epsilon))
		}
		u.done = u.done || u.used == len(u.order)
		u.save(mine)
		result := make([]float64, rows)
		u.Result(result)
		store(out[unit*rows:], result)
		used[unit], done[unit] = int32(u.used), 0
		if u.done {
			done[unit] = 1
			finished++
		}
	}
	if p.Flag != 0 && finished == s.Units() {
		*at[int32](m, "Flag", p.Flag, 0) = 1
	}
}

func (u *psaUnit) load(state []float64) {
	size := len(state) / len(u.Heads)
	for g := range u.Heads {
		from := state[g*size:][:size]
		u.Heads[g].Max, u.Heads[g].Sum, u.Least[g] = from[0], from[1], from[2]
		copy(u.Heads[g].Out, from[psaFixed:])
	}
}

func (u *psaUnit) save(state []float64) {
	size := len(state) / len(u.Heads)
	for g, h := range u.Heads {
		to := state[g*size:][:size]
		to[0], to[1], to[2] = h.Max, h.Sum, u.Least[g]
		copy(to[psaFixed:], h.Out)
	}
}
