package emulator

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
)

// What follows a gate on its stream runs once the host has opened it, with what the host wrote
// before; other streams go on, and who waits for the stream meanwhile is told that it would never
// end.
func TestStreamsWaitForTheHost(t *testing.T) {
	for _, c := range []Config{{}, {Late: true}, {Late: true, Seed: 3}} {
		g := newFixture(t, c)
		s, other, before, after := g.stream(), g.stream(), g.event(), g.event()
		gate, from := pinned(g, make([]byte, 8)), pinned(g, make([]byte, 64))
		dst, copied, counted := g.device(64), g.device(64), g.device(8)
		rows, to := pinned(g, make([]byte, 2*128)), g.device(2*128)
		numbers := cuda.Slice[int64](rows)
		word := &cuda.Slice[uint64](gate)[0]
		for turn := int64(1); turn <= 3; turn++ {
			g.must(g.EventRecord(before, s))
			g.must(g.Launch(&cuda.HostGateArgs{Dst: dst, Src: from.Ptr(), Bytes: 64,
				Gate: gate.Ptr(), Turn: turn, Counted: counted, RowDst: to, RowSrc: rows.Ptr(), Pitch: 128,
				Rows: 2}, s))
			g.must(g.Launch(&cuda.CarryArgs{Dst: copied, Src: dst, Bytes: 64}, s))
			g.must(g.EventRecord(after, s))
			g.must(g.EventSync(before))
			g.must(g.Launch(&cuda.EmptyArgs{}, other))
			g.must(g.StreamSync(other))
			want := make([]byte, 64)
			for i := range want {
				want[i] = byte(turn) + byte(i)
			}
			copy(from.Bytes(), want)
			for i := range numbers {
				numbers[i] = 100*turn + int64(i)
			}
			atomic.StoreUint64(word, cuda.GateWord(turn, 10+turn))
			g.must(g.EventSync(after))
			if got := download[byte](g, copied, 64); !slices.Equal(got, want) {
				t.Errorf("%+v, turn %d: %v", c, turn, got)
			}
			for i, got := range download[int64](g, to, 32) {
				if there := int64(i%16) < 10+turn; there != (got == 100*turn+int64(i)) {
					t.Errorf("%+v, turn %d: element %d is %d", c, turn, i, got)
				}
			}
			if n := download[int64](g, counted, 1)[0]; n != 10+turn {
				t.Errorf("%+v, turn %d: %d counted", c, turn, n)
			}
		}
	}
	g := newFixture(t, Config{})
	s, gate := g.stream(), pinned(g, make([]byte, 8))
	g.must(g.Launch(&cuda.HostGateArgs{Gate: gate.Ptr(), Turn: 1}, s))
	if err := g.StreamSync(s); !errors.Is(err, cuda.Failed) {
		t.Errorf("waiting for a closed gate: %v", err)
	}
	for what, a := range map[string]cuda.HostGateArgs{
		"no gate": {Turn: 1}, "a gate out of step": {Gate: gate.Ptr() + 4},
		"bytes of no word": {Gate: gate.Ptr(), Bytes: 8, Dst: 16, Src: 16},
		"no source":        {Gate: gate.Ptr(), Bytes: 16, Dst: 16},
		"a turn before 0":  {Gate: gate.Ptr(), Turn: -1},
	} {
		if err := g.Launch(&a, 0); !errors.Is(err, cuda.BadArgument) {
			t.Errorf("%s: %v", what, err)
		}
	}
	faults(t, "a gate nowhere", g.Launch(&cuda.HostGateArgs{Gate: 1 << 40, Turn: 1}, 0), "Gate", "")
}

// A word opens its turn and those before it.
func TestGateWords(t *testing.T) {
	n, open := cuda.GateOpen(cuda.GateWord(7, 1<<24-1), 7)
	if n != 1<<24-1 || !open {
		t.Errorf("%d, %v", n, open)
	}
	if _, open := cuda.GateOpen(cuda.GateWord(6, 1<<24-1), 7); open {
		t.Error("turn 6 opened 7")
	}
	if n, open := cuda.GateOpen(cuda.GateWord(1<<40-1, 0), 7); n != 0 || !open {
		t.Errorf("the last turn of all: %d, %v", n, open)
	}
}
