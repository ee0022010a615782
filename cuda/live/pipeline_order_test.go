package live_test

import (
	"maps"
	"sync"
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/emulator"
	"github.com/sparseserve/sparseserve/cuda/live"
)

// waiting is a machine that follows what comes before what: how much of each stream's work is over
// before a stream's next work begins, and before the host goes on.
type waiting struct {
	live.Machine

	mu     sync.Mutex
	high   []cuda.Stream // streams of high priority, in the order of their creation
	main   cuda.Stream   // the first of them
	loads  cuda.Stream   // the second, which loads for rounds
	n      map[cuda.Stream]int
	before map[cuda.Stream]map[cuda.Stream]int // of a stream's next work
	events map[cuda.Event]map[cuda.Stream]int  // what is over with an event
	host   map[cuda.Stream]int                 // what is over for the host

	other    int   // the last of the main stream's work that is no attention of rounds
	attends  []int // since then, the launches of rounds
	attended int
	faults   map[string]int
}

func newWaiting(m live.Machine) *waiting {
	return &waiting{Machine: m, n: map[cuda.Stream]int{},
		before: map[cuda.Stream]map[cuda.Stream]int{}, host: map[cuda.Stream]int{},
		events: map[cuda.Event]map[cuda.Stream]int{}, faults: map[string]int{}}
}

func (m *waiting) StreamCreate(high bool) (cuda.Stream, error) {
	s, err := m.Machine.StreamCreate(high)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.before[s] = map[cuda.Stream]int{}; high {
		m.high = append(m.high, s)
		m.main, m.loads = m.high[0], m.high[min(1, len(m.high)-1)]
	}
	return s, err
}

func later(into, from map[cuda.Stream]int) {
	for s, n := range from {
		into[s] = max(into[s], n)
	}
}

func (m *waiting) EventRecord(e cuda.Event, s cuda.Stream) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	over := maps.Clone(m.before[s])
	if over == nil {
		over = map[cuda.Stream]int{}
	}
	over[s] = m.n[s]
	m.events[e] = over
	return m.Machine.EventRecord(e, s)
}

func (m *waiting) StreamWait(s cuda.Stream, e cuda.Event) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	later(m.before[s], m.events[e])
	return m.Machine.StreamWait(s, e)
}

func (m *waiting) EventSync(e cuda.Event) error {
	err := m.Machine.EventSync(e)
	m.mu.Lock()
	defer m.mu.Unlock()
	later(m.host, m.events[e])
	return err
}

func (m *waiting) StreamSync(s cuda.Stream) error {
	err := m.Machine.StreamSync(s)
	m.mu.Lock()
	defer m.mu.Unlock()
	later(m.host, map[cuda.Stream]int{s: m.n[s]})
	later(m.host, m.before[s])
	return err
}

// Launch checks what must be over. Rounds attend once all that was loaded for them, or for rounds
// of a layer before that never came, is there. Loads beside them begin once everything before the
// layer's rounds is over, and while one launch of rounds is under way at most.
func (m *waiting) Launch(op cuda.Operation, s cuda.Stream) error {
	m.mu.Lock()
	m.n[s]++
	call := cuda.Function(op)
	switch {
	case s == m.loads:
		if m.before[s][m.main] < m.other {
			m.faults["loads before the slots are free"]++
		}
		under := 0
		for _, n := range m.attends {
			if n > m.host[m.main] {
				under++
			}
		}
		if under > 1 {
			m.faults["loads far ahead"]++
		}
	case call == "ss_psa":
		m.main = s
		m.attends = append(m.attends, m.n[s])
		m.attended++
		if m.before[s][m.loads] < m.n[m.loads] {
			m.faults["attends before its blocks are there"]++
		}
	case s == m.main:
		m.other, m.attends = m.n[s], m.attends[:0]
	}
	m.mu.Unlock()
	return m.Machine.Launch(op, s)
}

// Each wait of the pipeline by itself, by the order of calls: no fault needs an unlucky time.
func TestPipelineWaitsForEachOther(t *testing.T) {
	for _, name := range []string{"mha/psa, memcpy", "mha/psa, small"} {
		m := emulator.New(emulator.Config{})
		defer m.Close()
		o := newWaiting(m)
		if _, _, err := cases()[name].onMachine(t.Context(), o, &counted{}); err != nil {
			t.Fatal(err)
		}
		if o.attended < 20 || o.n[o.loads] < 20 {
			t.Errorf("%s: %d launches of rounds, %d loads beside them", name, o.attended, o.n[o.loads])
		}
		for fault, n := range o.faults {
			t.Errorf("%s: %s, %d times", name, fault, n)
		}
	}
}
