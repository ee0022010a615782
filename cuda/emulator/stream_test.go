package emulator

import (
	"fmt"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
)

// seeds are schedules: everything as late as can be, and some where streams run ahead.
var seeds = []uint64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}

// wrong counts the schedules of Late under which a program's answer is not what it is in call
// order.
func wrong(t *testing.T, program func(*fixture) []int32) (n int) {
	t.Helper()
	want := program(newFixture(t, Config{}))
	for _, seed := range seeds {
		if !slices.Equal(program(newFixture(t, Config{Late: true, Seed: seed})), want) {
			n++
		}
	}
	return n
}

// waits shows that a program with its wait is always right, and that at least as late as can be it
// is wrong without.
func waits(t *testing.T, program func(g *fixture, with bool) []int32) {
	t.Helper()
	if n := wrong(t, func(g *fixture) []int32 { return program(g, true) }); n > 0 {
		t.Errorf("wrong under %d of %d schedules with the wait", n, len(seeds))
	}
	if n := wrong(t, func(g *fixture) []int32 { return program(g, false) }); n == 0 {
		t.Error("right under every schedule without the wait: nothing was delayed")
	}
}

func TestLateNeedsStreamSync(t *testing.T) {
	waits(t, func(g *fixture, with bool) []int32 {
		s, src, to := g.stream(), upload(g, []int32{1, 2, 3, 4}), g.host(16)
		g.must(g.Launch(&cuda.MemcpyArgs{Dst: to.Ptr(), Src: src, Bytes: 16}, s))
		if with {
			g.must(g.StreamSync(s))
		}
		return slices.Clone(cuda.Slice[int32](to))
	})
}

func TestLateNeedsStreamWait(t *testing.T) {
	waits(t, func(g *fixture, with bool) []int32 {
		a, b, e, x, y := g.stream(), g.stream(), g.event(), upload(g, []int32{1, 2, 3, 4}), g.device(16)
		to := g.host(16)
		g.must(g.Launch(&cuda.MemcpyArgs{Dst: y, Src: x, Bytes: 16}, a))
		g.must(g.EventRecord(e, a))
		if with {
			g.must(g.StreamWait(b, e))
		}
		g.must(g.Launch(&cuda.MemcpyArgs{Dst: to.Ptr(), Src: y, Bytes: 16}, b))
		g.must(g.StreamSync(b))
		return slices.Clone(cuda.Slice[int32](to))
	})
}

// A wait is for the recording before it. Waiting without one, or recording after it, is no wait.
func TestLateWaitsForTheRecordingBefore(t *testing.T) {
	waits(t, func(g *fixture, with bool) []int32 {
		a, b, e, x, y := g.stream(), g.stream(), g.event(), upload(g, []int32{1, 2, 3, 4}), g.device(16)
		to := g.host(16)
		record := func(now bool) {
			if now {
				g.must(g.EventRecord(e, a))
			}
		}
		g.must(g.Launch(&cuda.MemcpyArgs{Dst: y, Src: x, Bytes: 16}, a))
		record(with)
		g.must(g.StreamWait(b, e))
		record(!with)
		g.must(g.Launch(&cuda.MemcpyArgs{Dst: to.Ptr(), Src: y, Bytes: 16}, b))
		g.must(g.StreamSync(b))
		return slices.Clone(cuda.Slice[int32](to))
	})
}

// A staging buffer must not be written again before the copy from it is over.
func TestLateReadsPinnedMemoryWhenItRuns(t *testing.T) {
	waits(t, func(g *fixture, with bool) []int32 {
		s, staging, dst, e := g.stream(), g.host(16), g.device(32), g.event()
		for i := range 2 {
			for j := range cuda.Slice[int32](staging) {
				cuda.Slice[int32](staging)[j] = int32(10*i + j)
			}
			g.must(g.Launch(&cuda.MemcpyArgs{Dst: dst + cuda.Ptr(16*i), Src: staging.Ptr(), Bytes: 16}, s))
			g.must(g.EventRecord(e, s))
			if with {
				g.must(g.EventSync(e))
			}
		}
		return download[int32](g, dst, 8)
	})
}

func TestLateReadsArgumentsWhenCalled(t *testing.T) {
	g := newFixture(t, Config{Late: true})
	args := &cuda.MemsetArgs{Dst: g.device(16), Bytes: 16, Value: 3}
	p := args.Dst
	g.must(g.Launch(args, 0))
	*args = cuda.MemsetArgs{}
	if got := download[byte](g, p, 16); got[0] != 3 || got[15] != 3 {
		t.Errorf("%v", got)
	}
}

// The memcpy forms read the addresses when called, the kernel forms when they run.
func TestLateReadsAddresses(t *testing.T) {
	for name, kernel := range map[string]bool{"memcpy": false, "kernel": true} {
		g := newFixture(t, Config{Late: true})
		x, y := upload(g, slices.Repeat([]int32{1}, 4)), upload(g, slices.Repeat([]int32{2}, 4))
		to, s := g.host(16), g.stream()
		src, dst := pinned(g, []cuda.Ptr{x}), pinned(g, []cuda.Ptr{to.Ptr()})
		a := cuda.BlocksArgs{Src: src.Ptr(), Dst: dst.Ptr(), Count: 1, BlockBytes: 16}
		var op cuda.Operation = (*cuda.MemcpyBlocksArgs)(&a)
		if kernel {
			op = (*cuda.GPUScatterArgs)(&a)
		}
		g.must(g.Launch(op, s))
		cuda.Slice[cuda.Ptr](src)[0] = y
		g.must(g.StreamSync(s))
		if got := cuda.Slice[int32](to)[0]; got != map[bool]int32{false: 1, true: 2}[kernel] {
			t.Errorf("%s: copied %d", name, got)
		}
	}
}

func TestLateSavesWait(t *testing.T) {
	waits(t, func(g *fixture, with bool) []int32 {
		saver, err := g.SaverCreate(1, 4096, 2)
		g.must(err)
		s, e, x, y, to := g.stream(), g.event(), upload(g, slices.Repeat([]int32{7}, 16)),
			g.device(64), g.host(64)
		g.must(g.Launch(&cuda.MemcpyArgs{Dst: y, Src: x, Bytes: 64}, s))
		g.must(g.EventRecord(e, s))
		args := &cuda.SaveArgs{Saver: saver, Src: y, Dst: pinned(g, []cuda.Ptr{to.Ptr()}).Ptr(), Count: 1,
			BlockBytes: 64}
		if with {
			args.After = e
		}
		g.must(g.Launch(args, 0))
		got := slices.Clone(cuda.Slice[int32](to))
		g.must(g.StreamSync(s))
		return got
	})
}

// Freeing waits for the device, as the CUDA runtime does.
func TestLateFreesAfterUse(t *testing.T) {
	g := newFixture(t, Config{Late: true})
	x, to := upload(g, []int32{5, 5, 5, 5}), g.host(16)
	g.must(g.Launch(&cuda.MemcpyArgs{Dst: to.Ptr(), Src: x, Bytes: 16}, g.stream()))
	g.must(g.DeviceFree(x))
	if cuda.Slice[int32](to)[3] != 5 {
		t.Error("freed before it was read")
	}
}

// What fails late is reported by the call that made it run, and by all after it.
func TestLateFaultsStay(t *testing.T) {
	g := newFixture(t, Config{Late: true})
	s, p := g.stream(), g.device(16)
	g.must(g.Launch(&cuda.MemsetArgs{Dst: p, Bytes: 17}, s))
	g.must(g.Launch(&cuda.MemsetArgs{Dst: p, Bytes: 16}, s))
	faults(t, "sync", g.StreamSync(s), "Dst", "1 bytes past the end")
	faults(t, "another sync", g.StreamSync(0), "Dst", "1 bytes past the end")
	faults(t, "a later call", g.Launch(&cuda.EmptyArgs{}, 0), "Dst", "1 bytes past the end")
	if download := g.emulated.memory.find(p).data; download[0] != poison {
		t.Error("work ran on after a fault")
	}
}

// Memory that streams write at once ends as the schedule has it: the same for the same seed.
func TestLateSchedulesRepeat(t *testing.T) {
	race := func(seed uint64) string {
		g := newFixture(t, Config{Late: true, Seed: seed})
		p := g.device(64)
		streams := []cuda.Stream{g.stream(), g.stream(), g.stream()}
		for i := range 60 {
			g.must(g.Launch(&cuda.MemsetArgs{Dst: p + cuda.Ptr(i%16), Bytes: 16, Value: int32(i)},
				streams[i%3]))
		}
		return fmt.Sprint(download[byte](g, p, 32))
	}
	found := map[string]bool{}
	for _, seed := range seeds {
		a := race(seed)
		if b := race(seed); a != b {
			t.Errorf("seed %d: two answers", seed)
		}
		found[a] = true
	}
	if len(found) < 3 {
		t.Errorf("%d seeds have %d schedules", len(seeds), len(found))
	}
}
