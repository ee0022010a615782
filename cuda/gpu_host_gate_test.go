//go:build gpu

package cuda

import (
	"bytes"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// What the host writes before it opens a gate is what the stream goes on with, at any size and
// however soon after the launch, and nothing goes on before.
func TestGPUHostGate(t *testing.T) {
	onGPU(t, func(g *gpu) {
		const most = 1 << 20
		from, back, gate := g.host(most, DriverPages), g.host(most, DriverPages), g.host(8, DriverPages)
		to, counted, number := g.device(most), g.device(8), g.host(8, DriverPages)
		word := &Slice[uint64](gate)[0]
		*word = 0
		stream, err := g.StreamCreate(true)
		g.must(err)
		// The first launch of a kernel may load it, which waits for the GPU, and so for the gate.
		g.must(g.Launch(&CarryArgs{Dst: back.Ptr(), Src: to, Bytes: 16}, stream))
		g.must(g.StreamSync(stream))
		rows, rowsTo, rowsBack := g.host(2*64<<10, DriverPages), g.device(2*64<<10),
			g.host(2*64<<10, DriverPages)
		turn := int64(0)
		pass := func(n int64, pause time.Duration) {
			turn++
			clear(back.Bytes()[:n])
			g.must(g.Launch(&HostGateArgs{Dst: to, Src: from.Ptr(), Bytes: n, Gate: gate.Ptr(), Turn: turn,
				Counted: counted, RowDst: rowsTo, RowSrc: rows.Ptr(), Pitch: 64 << 10, Rows: 2}, stream))
			g.must(g.Launch(&CarryArgs{Dst: rowsBack.Ptr(), Src: rowsTo, Bytes: 2 * 64 << 10}, stream))
			g.must(g.Launch(&CarryArgs{Dst: back.Ptr(), Src: to, Bytes: n}, stream))
			g.must(g.Launch(&CarryArgs{Dst: number.Ptr(), Src: counted, Bytes: 8}, stream))
			time.Sleep(pause)
			g.noise(from.Bytes()[:n])
			count := n/256 + turn%7
			g.noise(rows.Bytes()[:8*count])
			g.noise(rows.Bytes()[64<<10:][:8*count])
			atomic.StoreUint64(word, GateWord(turn, count))
			g.must(g.StreamSync(stream))
			if !bytes.Equal(back.Bytes()[:n], from.Bytes()[:n]) {
				t.Errorf("turn %d, %d bytes: not what the host wrote", turn, n)
			}
			if got := Slice[int64](number)[0]; got != count {
				t.Errorf("turn %d: %d counted, the host wrote %d", turn, got, count)
			}
			for _, first := range []int64{0, 64 << 10} {
				if !bytes.Equal(rows.Bytes()[first:][:8*count], rowsBack.Bytes()[first:][:8*count]) {
					t.Errorf("turn %d: %d elements of a row are not the host's", turn, count)
				}
			}
		}
		for _, n := range []int64{0, 16, 256, 4096, 33 << 10, 200_000, most} {
			pass(n, 2*time.Millisecond)
		}
		for range 2000 {
			pass(4096, 0)
		}
		for what, a := range map[string]HostGateArgs{
			"no gate": {Turn: 1}, "bytes of no word": {Gate: gate.Ptr(), Bytes: 8, Dst: to, Src: from.Ptr()},
			"no source": {Gate: gate.Ptr(), Bytes: 16, Dst: to}, "a turn before 0": {Gate: gate.Ptr(),
				Turn: -1},
		} {
			if err := g.Launch(&a, stream); err == nil {
				t.Errorf("%s: launched", what)
			}
		}
		g.must(g.StreamDestroy(stream))
	})
}

// The median time from the host's store until it sees what follows the gate, by the bytes that the
// gate brings and the elements of its two rows.
func BenchmarkGPUHostGate(b *testing.B) {
	for _, c := range []struct{ bytes, loads int64 }{{16, 0}, {4 << 10, 0}, {4 << 10, 16},
		{64 << 10, 0}} {
		b.Run(fmt.Sprintf("%dbytes,%dloads", c.bytes, c.loads), func(b *testing.B) {
			onGPU(b, func(g *gpu) { benchGate(b, g, c.bytes, c.loads) })
		})
	}
}

func benchGate(b *testing.B, g *gpu, bytes, loads int64) {
	const pitch = 4 << 10
	from, gate, seen := g.host(bytes, DriverPages), g.host(8, DriverPages), g.host(8, DriverPages)
	rows, rowsTo := g.host(2*pitch, DriverPages), g.device(2*pitch)
	to, counted := g.device(bytes), g.device(8)
	word, sees := &Slice[uint64](gate)[0], &Slice[uint64](seen)[0]
	*word, *sees = 0, 0
	stream, err := g.StreamCreate(true)
	g.must(err)
	after := &CarryArgs{Dst: seen.Ptr(), Src: counted, Bytes: 8}
	g.must(g.Launch(after, stream)) // loads the kernel
	g.must(g.StreamSync(stream))
	var took []time.Duration
	for turn := int64(1); b.Loop(); turn++ {
		g.must(g.Launch(&HostGateArgs{Dst: to, Src: from.Ptr(), Bytes: bytes, Gate: gate.Ptr(),
			Turn: turn, Counted: counted, RowDst: rowsTo, RowSrc: rows.Ptr(), Pitch: pitch, Rows: 2},
			stream))
		g.must(g.Launch(after, stream))
		atomic.StoreUint64(sees, ^uint64(0))
		time.Sleep(50 * time.Microsecond) // the gate's kernel polls
		start := time.Now()
		atomic.StoreUint64(word, GateWord(turn, loads))
		for atomic.LoadUint64(sees) != uint64(loads) {
		}
		took = append(took, time.Since(start))
		g.must(g.StreamSync(stream))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())*1e-3, "us/opening")
	g.must(g.StreamDestroy(stream))
}
