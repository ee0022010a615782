package live

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"sparseserve/cuda"
	"sparseserve/cuda/soft"
)

// recorder writes down which norms it was asked for. It is slow at first, so that whoever asks is far ahead of it.
type recorder struct {
	Machine
	slow  int
	seen  []int32
	fails int32 // the norm of so many rows does; 0: none
}

func (r *recorder) Init(int) error { return nil }

func (r *recorder) RMSNorm(a *cuda.RMSNormArgs, _ cuda.Stream) error {
	if len(r.seen) < r.slow {
		time.Sleep(100 * time.Microsecond)
	}
	r.seen = append(r.seen, a.Rows)
	if r.fails > 0 && a.Rows == r.fails {
		return &cuda.Error{Call: "ss_rmsnorm", Code: cuda.Failed, Text: "an illegal memory access was encountered"}
	}
	return nil
}

func (r *recorder) StreamSync(cuda.Stream) error { return nil }

// Whatever the two threads' pace, calls are carried out in the order of asking, with the arguments that they had then, and all of them before a wait
// for the stream ends.
func TestQueueKeepsOrder(t *testing.T) {
	t.Parallel()
	m := &recorder{slow: 300}
	var c Counters
	q, err := newQueue(m, &c)
	if err != nil {
		t.Fatal(err)
	}
	var a cuda.RMSNormArgs
	const all = 5 * queueLength
	for i := range int32(all) {
		a.Rows = i // the same struct again and again
		if err := q.RMSNorm(&a, 0); err != nil {
			t.Fatal(err)
		}
		if i%1000 == 0 {
			time.Sleep(time.Millisecond) // until the thread sleeps
		}
		if i%1500 != 0 {
			continue
		}
		if err := q.StreamSync(0); err != nil {
			t.Fatal(err)
		}
		if len(m.seen) != int(i)+1 {
			t.Fatalf("%d calls were asked for and %d are done", i+1, len(m.seen))
		}
	}
	q.close()
	for i, rows := range m.seen {
		if int(rows) != i {
			t.Fatalf("call %d is number %d of those asked for", i, rows)
		}
	}
	if len(m.seen) != all || c.Calls != all {
		t.Errorf("%d of %d calls, %d counted", len(m.seen), all, c.Calls)
	}
}

// A call's failure is told with its own step and layer, however much later it is heard of; what was asked after it is not done, and memory is still
// given back.
func TestQueueTellsWhereACallFailed(t *testing.T) {
	t.Parallel()
	m := &recorder{slow: 8, fails: 5}
	q, err := newQueue(m, &Counters{})
	if err != nil {
		t.Fatal(err)
	}
	defer q.close()
	for i := range int32(8) {
		q.at(7, int(i)-1)
		err = errors.Join(err, q.RMSNorm(&cuda.RMSNormArgs{Rows: i}, 0))
	}
	if err = q.StreamSync(0); err == nil {
		t.Fatal("a wait for the stream does not tell of a failed call")
	}
	var failed *cuda.Error
	const want = "live: step 7, layer 4: "
	if err = told(err, "step %d, layer %d, selection", 9, 3); !errors.As(err, &failed) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %q and the call", err, want)
	}
	if len(m.seen) != 6 {
		t.Errorf("%d calls were carried out, the sixth failed", len(m.seen))
	}
	if err = told(errors.New("of its own"), "step %d", 9); err.Error() != "live: step 9: of its own" {
		t.Error(err)
	}
}

// A save whose blocks never get into the ring does not let its waiters wait.
func TestSaveBehindAFailureFails(t *testing.T) {
	t.Parallel()
	soft := soft.New(soft.Config{})
	defer soft.Close()
	m := &failing{Machine: soft}
	q, err := newQueue(m, &Counters{})
	if err != nil {
		t.Fatal(err)
	}
	defer q.close()
	s, err := newSaver(q, "gpu", 64*64, 64, 1)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := soft.StreamCreate(false)
	if err != nil {
		t.Fatal(err)
	}
	_ = q.GPUScatter(&cuda.BlocksArgs{Count: 1}, stream) // told below
	at, end, _, err := s.reserve(1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = s.submit(3, 2, at, 1, end, stream); err == nil {
		_, err = s.drain()
	}
	var failed *cuda.Error
	if !errors.As(err, &failed) {
		t.Errorf("%v, want the scatter's failure", err)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
}

type failing struct{ Machine }

func (f *failing) GPUScatter(*cuda.BlocksArgs, cuda.Stream) error {
	return &cuda.Error{Call: "ss_gpu_scatter", Code: cuda.Failed, Text: "an illegal memory access was encountered"}
}

// Asking allocates nothing.
func TestQueueAllocatesNothing(t *testing.T) {
	q, err := newQueue(&recorder{seen: make([]int32, 0, 1<<20)}, &Counters{})
	if err != nil {
		t.Fatal(err)
	}
	defer q.close()
	a := &cuda.RMSNormArgs{Rows: 1}
	n := testing.AllocsPerRun(100, func() {
		for range 1000 {
			if err := q.RMSNorm(a, 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := q.StreamSync(0); err != nil {
			t.Fatal(err)
		}
	})
	if n > 0 {
		t.Errorf("%v allocations for a thousand calls", n)
	}
}

// Two threads that wait for each other by turns, after pauses in which they fall asleep, always find each other.
func TestGateWakes(t *testing.T) {
	t.Parallel()
	q, err := newQueue(&recorder{}, &Counters{})
	if err != nil {
		t.Fatal(err)
	}
	defer q.close()
	a := &cuda.RMSNormArgs{}
	for i := range 20000 {
		if err := q.RMSNorm(a, 0); err != nil {
			t.Fatal(err)
		}
		if err := q.StreamSync(0); err != nil {
			t.Fatal(err)
		}
		for range i % 50 {
			runtime.Gosched()
		}
	}
}
