package emulator

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sparseserve/sparseserve/cuda"
)

func TestEventsKeepTime(t *testing.T) {
	now := time.Unix(0, 0)
	g := newFixture(t, Config{
		Clock: func() time.Time { now = now.Add(1500 * time.Microsecond); return now }})
	a, b := g.event(), g.event()
	g.must(g.EventRecord(a, 0))
	g.must(g.EventRecord(b, 0))
	if ms, err := g.EventMilliseconds(a, b); ms != 1.5 || err != nil {
		t.Errorf("%g ms, %v", ms, err)
	}
	untimed, err := g.EventCreate(false)
	g.must(err)
	g.must(g.EventRecord(untimed, 0))
	if ms, err := g.EventMilliseconds(a, untimed); !errors.Is(err, cuda.Failed) {
		t.Errorf("an event without time was %g ms later, %v", ms, err)
	}
	g.must(g.EventDestroy(a))
	if err := g.EventSync(a); !errors.Is(err, cuda.Failed) {
		t.Errorf("an event destroyed: %v", err)
	}
}

// Two goroutines work side by side, as the live device and its saves do.
func TestTwoGoroutines(t *testing.T) {
	for _, config := range []Config{{}, {Late: true, Seed: 3}} {
		g := newFixture(t, config)
		saver, err := g.SaverCreate(1, 4096, 2)
		g.must(err)
		src, dst, work, s := upload(g, slices.Repeat([]int32{9}, 16)), g.host(64),
			g.device(256), g.stream()
		to := pinned(g, []cuda.Ptr{dst.Ptr()})
		var wait sync.WaitGroup
		errs := make(chan error, 2)
		wait.Go(func() {
			for range 200 {
				if err := g.Launch(&cuda.SaveArgs{Saver: saver, Src: src, Dst: to.Ptr(), Count: 1,
					BlockBytes: 64}, 0); err != nil {
					errs <- err
					return
				}
				clear(dst.Bytes())
			}
		})
		wait.Go(func() {
			for i := range 200 {
				if err := errors.Join(g.Launch(&cuda.MemsetArgs{Dst: work, Bytes: 256, Value: int32(i)}, s),
					g.StreamSync(s)); err != nil {
					errs <- err
					return
				}
			}
		})
		wait.Wait()
		close(errs)
		for err := range errs {
			t.Error(err)
		}
		if got := download[byte](g, work, 256); got[0] != 199 || got[255] != 199 {
			t.Errorf("the work ended with %d", got[0])
		}
	}
}
