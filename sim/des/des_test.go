package des

import (
	"sort"
	"testing"

	"pgregory.net/rapid"
)

// Law 5: time never runs back; equal times are ordered by priority, then sequence.
func TestLaw5EventOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type ev struct {
			at   Time
			prio int8
			seq  int
		}
		var q Queue[ev]
		var want, got []ev
		n := rapid.IntRange(1, 200).Draw(t, "n")
		for i := range n {
			e := ev{Time(rapid.IntRange(0, 20).Draw(t, "at")),
				int8(rapid.IntRange(-2, 2).Draw(t, "prio")), i}
			want = append(want, e)
			q.Schedule(e.at, e.prio, e)
		}
		sort.Slice(want, func(i, j int) bool {
			a, b := want[i], want[j]
			if a.at != b.at {
				return a.at < b.at
			}
			if a.prio != b.prio {
				return a.prio < b.prio
			}
			return a.seq < b.seq
		})
		for e, ok := q.Next(); ok; e, ok = q.Next() {
			if q.Now() != e.at {
				t.Fatalf("clock %v at event of %v", q.Now(), e.at)
			}
			got = append(got, e)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("event %d: got %v, want %v", i, got[i], want[i])
			}
		}
	})
}

func TestScheduleInThePastPanics(t *testing.T) {
	var q Queue[int]
	q.Schedule(5, 0, 1)
	q.Next()
	defer func() {
		if recover() == nil {
			t.Fatal("an event before now was accepted")
		}
	}()
	q.Schedule(4, 0, 2)
}

func TestRandStreamsAreNamed(t *testing.T) {
	a, b, c := Rand(1, "a"), Rand(1, "b"), Rand(1, "a")
	if x, y := a.Uint64(), c.Uint64(); x != y {
		t.Fatalf("same seed and name differ: %x %x", x, y)
	}
	if a.Uint64() == b.Uint64() {
		t.Fatal("two names give one stream")
	}
}

func BenchmarkQueue(b *testing.B) {
	var q Queue[int]
	for i := range 64 {
		q.Schedule(Time(i*7%64), 0, i)
	}
	b.ReportAllocs()
	for b.Loop() {
		e, _ := q.Next()
		q.Schedule(q.Now()+Time(e), 0, e)
	}
}

func TestQueueSteadyStateAllocatesNothing(t *testing.T) {
	var q Queue[int]
	for i := range 64 {
		q.Schedule(Time(i), 0, i)
	}
	if n := testing.AllocsPerRun(1000, func() {
		e, _ := q.Next()
		q.Schedule(q.Now()+Time(e), 0, e)
	}); n != 0 {
		t.Fatalf("%v allocations a step", n)
	}
}
