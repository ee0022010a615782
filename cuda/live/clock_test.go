package live_test

import (
	"testing"
	"time"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/emulator"
	"github.com/sparseserve/sparseserve/cuda/live"
)

// slowReader is a machine whose events are slow to read.
type slowReader struct {
	live.Machine
	spent time.Duration
}

func (m *slowReader) EventMilliseconds(from, to cuda.Event) (float64, error) {
	start := time.Now()
	time.Sleep(time.Millisecond)
	ms, err := m.Machine.EventMilliseconds(from, to)
	m.spent += time.Since(start)
	return ms, err
}

// Steps are split by events that are read between them. That time belongs to
// no step, and so to no run with more or fewer steps that are split.
func TestReadingEventsBelongsToNoStep(t *testing.T) {
	machine := emulator.New(emulator.Config{})
	defer machine.Close()
	m := &slowReader{Machine: machine}
	start := time.Now()
	r := cases()["mha/sparse"].run(t, m)
	all, steps := time.Since(start), r.counters[len(r.counters)-1].Elapsed
	if m.spent < 200*time.Millisecond {
		t.Fatalf("%v of reading show nothing", m.spent)
	}
	if steps > all-m.spent {
		t.Errorf("steps of %v in a run of %v, of which events took %v", steps, all, m.spent)
	}
}
