package emulator

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"sparseserve/cuda"
)

// Asking an event again and again comes to an end.
func TestLateEventsPass(t *testing.T) {
	g := newRig(t, Config{Late: true})
	s, other, e, first := g.stream(), g.stream(), g.event(), g.event()
	if done, err := g.EventDone(e); !done || err != nil {
		t.Errorf("an event never recorded: %v, %v", done, err)
	}
	g.must(g.Launch(&cuda.EmptyArgs{}, other))
	g.must(g.EventRecord(first, other))
	g.must(g.StreamWait(s, first))
	for range 10 {
		g.must(g.Launch(&cuda.EmptyArgs{}, s))
	}
	g.must(g.EventRecord(e, s))
	asked := 0
	for done := false; !done; asked++ {
		var err error
		done, err = g.EventDone(e)
		g.must(err)
		if asked > 20 {
			t.Fatal("never done")
		}
	}
	if asked < 5 {
		t.Errorf("done after %d questions: nothing was delayed", asked)
	}
	if done, err := g.EventDone(first); !done || err != nil {
		t.Errorf("the event that the stream waited for: %v, %v", done, err)
	}
}

func TestEventsKeepTime(t *testing.T) {
	now := time.Unix(0, 0)
	g := newRig(t, Config{Clock: func() time.Time { now = now.Add(1500 * time.Microsecond); return now }})
	a, b := g.event(), g.event()
	g.must(g.EventRecord(a, 0))
	g.must(g.EventRecord(b, 0))
	if ms, err := g.EventMilliseconds(a, b); ms != 1.5 || err != nil {
		t.Errorf("%g ms, %v", ms, err)
	}
	g.must(g.EventDestroy(a))
	if err := g.EventSync(a); !errors.Is(err, cuda.Failed) {
		t.Errorf("an event destroyed: %v", err)
	}
}

// Two goroutines work side by side, as the live device and its saves do.
func TestTwoGoroutines(t *testing.T) {
	for _, config := range []Config{{}, {Late: true, Seed: 3}} {
		g := newRig(t, config)
		saver, err := g.SaverCreate(1, 4096, 2)
		g.must(err)
		src, dst, work, s := upload(g, slices.Repeat([]int32{9}, 16)), g.host(64), g.device(256), g.stream()
		to := pinned(g, []cuda.Ptr{dst.Ptr()})
		var wait sync.WaitGroup
		errs := make(chan error, 2)
		wait.Go(func() {
			for range 200 {
				if err := g.Launch(&cuda.SaveArgs{Saver: saver, Src: src, Dst: to.Ptr(), Count: 1, BlockBytes: 64}, 0); err != nil {
					errs <- err
					return
				}
				clear(dst.Bytes())
			}
		})
		wait.Go(func() {
			for i := range 200 {
				if err := errors.Join(g.Launch(&cuda.MemsetArgs{Dst: work, Bytes: 256, Value: int32(i)}, s), g.StreamSync(s)); err != nil {
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
