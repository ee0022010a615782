package live_test

import (
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/emulator"
	"github.com/sparseserve/sparseserve/cuda/live"
)

// deaf is a machine whose tables keep what the cache evicts.
type deaf struct {
	live.Machine
	kept int32
}

func (m *deaf) Launch(op cuda.Operation, s cuda.Stream) error {
	if a, ok := op.(*cuda.LookupArgs); ok {
		b := *a
		m.kept += b.Evictions
		b.Evicted, b.Evictions = 0, 0
		op = &b
	}
	return m.Machine.Launch(op, s)
}

// forgetful is a machine whose tables do not learn of blocks that the model begins to write, which
// have no page yet.
type forgetful struct {
	live.Machine
	kept int32
}

func (m *forgetful) Launch(op cuda.Operation, s cuda.Stream) error {
	if a, ok := op.(*cuda.TableArgs); ok && a.Evictions > 0 { // the cache is full: there are loads
		b := *a
		m.kept += b.Entries
		b.Entries = 0
		op = &b
	}
	return m.Machine.Launch(op, s)
}

// A run whose GPU finds other misses than the cache, fewer or more, ends with an error that says in
// which layer: until then every load reads and writes memory that there is.
func TestWrongLookupEndsTheRun(t *testing.T) {
	for _, name := range []string{"mha/gpu lookup: offload, small", "gqa/gpu lookup: offload, fifo",
		"gqa/gpu lookup: psa, small", "mha/gpu lookup: psa, in turns"} {
		for kind, make := range map[string]func(live.Machine) (live.Machine, *int32){
			"deaf": func(on live.Machine) (live.Machine, *int32) {
				m := &deaf{Machine: on}
				return m, &m.kept
			},
			"forgetful": func(on live.Machine) (live.Machine, *int32) {
				m := &forgetful{Machine: on}
				return m, &m.kept
			},
		} {
			c := cases()[name]
			if c == nil {
				t.Fatalf("no case %s", name)
			}
			m, kept := make(emulator.New(emulator.Config{}))
			_, device, err := c.onMachine(t.Context(), m, &counted{})
			if *kept == 0 {
				t.Fatalf("%s, %s: nothing is left out", name, kind)
			}
			if err == nil || !strings.Contains(err.Error(), "layer ") ||
				!strings.Contains(err.Error(), "the GPU's lookup misses") {
				t.Errorf("%s, %s: error is %v, want one of the lookup", name, kind, err)
			}
			if device == nil {
				continue // it ended while warming up
			}
			if err := device.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
