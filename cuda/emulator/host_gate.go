package emulator

import (
	"errors"
	"sync/atomic"

	"github.com/sparseserve/sparseserve/cuda"
)

func checkHostGate(c *checks, a *cuda.HostGateArgs) {
	c.need(a.Gate != 0 && a.Gate%8 == 0, "a gate, at a multiple of 8")
	c.need(a.Bytes >= 0 && a.Bytes < 1<<30 && a.Bytes%16 == 0,
		"bytes >= 0, below 1 GiB, a multiple of 16")
	c.need(a.Bytes == 0 || a.Src != 0 && a.Dst != 0, "src and dst")
	c.need(a.Src%16 == 0 && a.Dst%16 == 0, "src and dst at multiples of 16")
	c.need(a.Turn >= 0, "turn >= 0")
	c.need(a.Rows >= 0 && a.Rows <= 64 && a.Pitch >= 0 && a.Pitch%16 == 0,
		"0 to 64 rows, a multiple of 16 bytes apart")
	c.need(a.Rows == 0 || a.RowSrc != 0 && a.RowDst != 0, "both ends of rows")
	c.need(a.RowSrc%16 == 0 && a.RowDst%16 == 0, "rows at multiples of 16")
}

func hostGate(m *access, a *cuda.HostGateArgs) {
	n, _ := cuda.GateOpen(atomic.LoadUint64(at[uint64](m, "Gate", a.Gate, 0)), a.Turn)
	copy(m.bytes("Dst", a.Dst, 0, a.Bytes), m.bytes("Src", a.Src, 0, a.Bytes))
	for i := range a.Rows {
		from := int64(i) * a.Pitch
		copy(m.bytes("RowDst", a.RowDst, from, 8*n), m.bytes("RowSrc", a.RowSrc, from, 8*n))
	}
	if a.Counted != 0 {
		*at[int64](m, "Counted", a.Counted, 0) = n
	}
}

// hostGate holds the stream until the host has opened the gate.
func (m *Machine) hostGate(call string, args *cuda.HostGateArgs, s *stream) error {
	a := *args
	it, err := m.item(call, bind(&a, checkHostGate, hostGate))
	if err != nil {
		return err
	}
	it.held = func() error {
		return m.guard(call, func(x *access) error {
			word := atomic.LoadUint64(at[uint64](x, "Gate", a.Gate, 0))
			if _, open := cuda.GateOpen(word, a.Turn); open {
				return nil
			}
			return failure(call, cuda.Failed, "the host has not opened the gate for turn %d", a.Turn)
		})
	}
	if f := (*Fault)(nil); errors.As(it.held(), &f) {
		return f
	}
	return m.push(s, it)
}
