package queue

import (
	"errors"
	"reflect"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sparseserve/sparseserve/cuda"
)

// recorder writes down which norms it was asked for. It is slow at first, so that whoever asks is
// far ahead of it.
type recorder struct {
	cuda.Machine
	slow  int
	seen  []int32
	fails int32 // rows of the norm; 0: none
}

func (r *recorder) Init(int) error { return nil }

func (r *recorder) Launch(op cuda.Operation, _ cuda.Stream) error {
	a := op.(*cuda.RMSNormArgs)
	if len(r.seen) < r.slow {
		time.Sleep(100 * time.Microsecond)
	}
	r.seen = append(r.seen, a.Rows)
	if r.fails > 0 && a.Rows == r.fails {
		return &cuda.Error{Call: "ss_rmsnorm", Code: cuda.Failed, Text: "an illegal memory access was " +
			"encountered"}
	}
	return nil
}

func (r *recorder) StreamSync(cuda.Stream) error { return nil }

// spins are the spin times of a small machine, a large one, and none.
var spins = map[string]time.Duration{"asleep at once": 0, "small machine": shortSpin,
	"large machine": longSpin}

// Whatever the two threads' pace, calls are carried out in order, and all of them before a wait for
// the stream ends.
func TestQueueKeepsOrder(t *testing.T) {
	for name, spin := range spins {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &recorder{slow: 300}
			var c int64
			q, err := New(m, &c, spin)
			if err != nil {
				t.Fatal(err)
			}
			const all = 5 * length
			for i := range int32(all) {
				if err := q.Launch(&cuda.RMSNormArgs{Rows: i}, 0); err != nil {
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
			q.Close()
			q.Close()
			if err := q.StreamSync(0); err != nil {
				t.Error(err)
			}
			for i, rows := range m.seen {
				if int(rows) != i {
					t.Fatalf("call %d is number %d of those asked for", i, rows)
				}
			}
			if len(m.seen) != all || c != all {
				t.Errorf("%d of %d calls, %d counted", len(m.seen), all, c)
			}
			if q.work.slept == 0 {
				t.Error("the thread never slept")
			}
		})
	}
}

// A call's failure has its own step and layer, however much later it is seen; what was
// asked after it is not done, and memory is still given back.
func TestQueueTellsWhereACallFailed(t *testing.T) {
	t.Parallel()
	m := &recorder{slow: 8, fails: 5}
	q, err := New(m, new(int64), shortSpin)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	for i := range int32(8) {
		q.At(7, int(i)-1)
		err = errors.Join(err, q.Launch(&cuda.RMSNormArgs{Rows: i}, 0))
	}
	if err = q.StreamSync(0); err == nil {
		t.Fatal("a wait for the stream does not return a failed call")
	}
	var failed *cuda.Error
	const want = "live: step 7, layer 4: "
	if !errors.As(err, &failed) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %q and the call", err, want)
	}
	if len(m.seen) != 6 {
		t.Errorf("%d calls were carried out, the sixth failed", len(m.seen))
	}
}

// Asking allocates nothing.
func TestQueueAllocatesNothing(t *testing.T) {
	q, err := New(&recorder{seen: make([]int32, 0, 1<<20)}, new(int64), shortSpin)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	a := &cuda.RMSNormArgs{Rows: 1}
	n := testing.AllocsPerRun(100, func() {
		for range 1000 {
			if err := q.Launch(a, 0); err != nil {
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

// Two threads that wait for each other alternately, after pauses in which they fall asleep, always
// find each other.
func TestGateWakes(t *testing.T) {
	for name, spin := range spins {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q, err := New(&recorder{}, new(int64), spin)
			if err != nil {
				t.Fatal(err)
			}
			defer q.Close()
			a := &cuda.RMSNormArgs{}
			for i := range 5000 {
				if err := q.Launch(a, 0); err != nil {
					t.Fatal(err)
				}
				if err := q.StreamSync(0); err != nil {
					t.Fatal(err)
				}
				if i%100 == 0 {
					q.Wake()
				}
				for range i % 50 {
					runtime.Gosched()
				}
			}
		})
	}
}

// A thread serves one queue after another, and one whose machine cannot be initialised leaves it
// fit to serve.
func TestQueuesShareThreads(t *testing.T) {
	m := &threads{}
	for range 10 {
		q, err := New(m, new(int64), shortSpin)
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Launch(&cuda.RMSNormArgs{}, 0); err != nil {
			t.Fatal(err)
		}
		q.Close()
		if _, err := New(&broken{}, new(int64), shortSpin); err == nil {
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

func (m *threads) Launch(cuda.Operation, cuda.Stream) error {
	if m.seen == nil {
		m.seen = map[int]bool{}
	}
	m.seen[syscall.Gettid()] = true
	return nil
}

type broken struct{ cuda.Machine }

func (*broken) Init(int) error { return errors.New("no GPU") }

// Every call that names a stream goes through the queue, or waits for what is in it.
func TestNothingPassesTheQueue(t *testing.T) {
	t.Parallel()
	machine, queue, stream := reflect.TypeFor[cuda.Machine](), reflect.TypeFor[*Queue](),
		reflect.TypeFor[cuda.Stream]()
	n := 0
	for i := range machine.NumMethod() {
		method := machine.Method(i)
		has := false
		for j := range method.Type.NumIn() {
			has = has || method.Type.In(j) == stream
		}
		if !has {
			continue
		}
		n++
		own, _ := queue.MethodByName(method.Name)
		if file, _ := runtime.FuncForPC(own.Func.Pointer()).FileLine(
			own.Func.Pointer()); file == "<autogenerated>" {
			t.Errorf("%s passes the queue", method.Name)
		}
	}
	if n != 5 {
		t.Errorf("%d calls name a stream", n)
	}
}

// The caller's own failure is kept with its step and layer, the first one only, and nothing that is
// enqueued afterwards is carried out: tasks are abandoned.
func TestQueueKeepsTheCallersFailure(t *testing.T) {
	m := &recorder{}
	q, err := New(m, new(int64), shortSpin)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	q.At(3, 1)
	q.Fail(nil)
	if err := q.Err(); err != nil {
		t.Fatal(err)
	}
	q.Fail(errors.New("no memory"))
	q.At(4, -1)
	q.Fail(errors.New("of a later step"))
	task := &note{}
	if err := errors.Join(q.Launch(&cuda.RMSNormArgs{}, 0), q.Do(task)); err == nil {
		t.Error("calls after a failure do not report it")
	}
	if err := q.Drain(); err == nil || err.Error() != "live: step 3, layer 1: no memory" {
		t.Error(err)
	}
	if len(m.seen) > 0 || task.ran || !task.abandoned {
		t.Errorf("%d operations and %+v after a failure", len(m.seen), task)
	}
}

// note is a task that notes what became of it.
type note struct{ ran, abandoned bool }

func (n *note) Run(cuda.Machine) error { n.ran = true; return nil }
func (n *note) Abandon(error)          { n.abandoned = true }
