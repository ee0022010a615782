package live

import (
	"errors"
	"reflect"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"sparseserve/cuda"
	"sparseserve/cuda/emulator"
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

// spins are those of a machine of few processors, of many, and none.
var spins = map[string]time.Duration{"asleep at once": 0, "few processors": shortSpin, "many": longSpin}

// Whatever the two threads' pace, calls are carried out in the order of asking, with the arguments that they had then, and all of them before a wait
// for the stream ends.
func TestQueueKeepsOrder(t *testing.T) {
	for name, spin := range spins {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &recorder{slow: 300}
			var c Counters
			q, err := newQueue(m, &c, spin)
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
					time.Sleep(spin + time.Millisecond) // until the thread sleeps
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
			q.close()
			if err := q.StreamSync(0); err != nil {
				t.Error(err)
			}
			for i, rows := range m.seen {
				if int(rows) != i {
					t.Fatalf("call %d is number %d of those asked for", i, rows)
				}
			}
			if len(m.seen) != all || c.Calls != all {
				t.Errorf("%d of %d calls, %d counted", len(m.seen), all, c.Calls)
			}
			if q.work.slept == 0 {
				t.Error("the thread never slept")
			}
		})
	}
}

// A call's failure is told with its own step and layer, however much later it is heard of; what was asked after it is not done, and memory is still
// given back.
func TestQueueTellsWhereACallFailed(t *testing.T) {
	t.Parallel()
	m := &recorder{slow: 8, fails: 5}
	q, err := newQueue(m, &Counters{}, shortSpin)
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
	machine := emulator.New(emulator.Config{})
	defer machine.Close()
	m := &failing{Machine: machine}
	q, err := newQueue(m, &Counters{}, shortSpin)
	if err != nil {
		t.Fatal(err)
	}
	defer q.close()
	s, err := newSaver(q, "gpu", 64*64, 64, 1)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := machine.StreamCreate(false)
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
	q, err := newQueue(&recorder{seen: make([]int32, 0, 1<<20)}, &Counters{}, shortSpin)
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
	for name, spin := range spins {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q, err := newQueue(&recorder{}, &Counters{}, spin)
			if err != nil {
				t.Fatal(err)
			}
			defer q.close()
			a := &cuda.RMSNormArgs{}
			for i := range 5000 {
				if err := q.RMSNorm(a, 0); err != nil {
					t.Fatal(err)
				}
				if err := q.StreamSync(0); err != nil {
					t.Fatal(err)
				}
				if i%100 == 0 {
					q.rouse()
				}
				for range i % 50 {
					runtime.Gosched()
				}
			}
		})
	}
}

// A thread serves one queue after another, and one whose machine cannot be initialised leaves it fit to serve.
func TestQueuesShareThreads(t *testing.T) {
	m := &threads{}
	for range 10 {
		q, err := newQueue(m, &Counters{}, shortSpin)
		if err != nil {
			t.Fatal(err)
		}
		if err := q.RMSNorm(&cuda.RMSNormArgs{}, 0); err != nil {
			t.Fatal(err)
		}
		q.close()
		if _, err := newQueue(&broken{}, &Counters{}, shortSpin); err == nil {
			t.Fatal("a machine that cannot be initialised has a queue")
		}
		time.Sleep(time.Millisecond) // until the thread is back
	}
	if len(m.seen) > 5 {
		t.Errorf("ten queues, one after another, ran on %d threads", len(m.seen))
	}
}

// threads notes on which threads it is called.
type threads struct {
	recorder
	seen map[int]bool
}

func (m *threads) RMSNorm(*cuda.RMSNormArgs, cuda.Stream) error {
	if m.seen == nil {
		m.seen = map[int]bool{}
	}
	m.seen[syscall.Gettid()] = true
	return nil
}

type broken struct{ Machine }

func (*broken) Init(int) error { return errors.New("no GPU") }

// Every call that names a stream goes through the queue, or waits for what is in it.
func TestNothingPassesTheQueue(t *testing.T) {
	t.Parallel()
	machine, queue, stream := reflect.TypeFor[Machine](), reflect.TypeFor[*queue](), reflect.TypeFor[cuda.Stream]()
	n := 0
	for i := range machine.NumMethod() {
		method := machine.Method(i)
		takes := false
		for j := range method.Type.NumIn() {
			takes = takes || method.Type.In(j) == stream
		}
		if !takes {
			continue
		}
		n++
		own, _ := queue.MethodByName(method.Name)
		if file, _ := runtime.FuncForPC(own.Func.Pointer()).FileLine(own.Func.Pointer()); file == "<autogenerated>" {
			t.Errorf("%s passes the queue", method.Name)
		}
	}
	if n < 20 {
		t.Errorf("%d calls name a stream", n)
	}
}
