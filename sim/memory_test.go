package sim_test

import (
	"runtime"
	"testing"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// endless is a workload of short requests, a few in the server at a time, that
// notes the live heap after some of them.
type endless struct {
	n, made int
	heap    map[int]uint64
}

func (w *endless) Next() (sim.Arrival, bool, error) {
	if _, wanted := w.heap[w.made]; wanted {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		w.heap[w.made] = m.HeapAlloc
	}
	if w.made == w.n {
		return sim.Arrival{}, false, nil
	}
	w.made++
	h := des.Hash(uint64(w.made))
	return sim.Arrival{At: des.Time(w.made) * 12 * des.Millisecond, Prompt: 1 + int(h%60),
		Output: 1 + int(h>>32%8)}, true, nil
}

type forgetful struct{}

func (forgetful) Request(*metrics.Request) error { return nil }
func (forgetful) Gap(des.Time)                   {}
func (forgetful) Step(*metrics.Step) error       { return nil }

// Memory grows with the number of requests by the four latencies of each that exact percentiles
// keep (up to a bound), at most 32 bytes of a latency, and by nothing else.
func TestMemoryStaysFlat(t *testing.T) {
	for _, prefill := range []string{"chunked", "layer"} {
		t.Run(prefill, func(t *testing.T) {
			c := byHand(60)
			c.model = tiny(4, 4)
			c.spec.Selection.On, c.spec.Offload.On, c.spec.Offload.BatchControl = true, true, true
			c.spec.Prefill.Split, c.spec.MaxTokens, c.spec.Prefill.ChunkTokens = prefill, 64, 64
			c.spec.Simulation.Heads, c.spec.Simulation.Groups = "sampled", 4
			c.hbm = 60 * 16 * c.model.Geometry(4).BlockBytes
			w := &endless{n: 10_000, heap: map[int]uint64{2_000: 0, 10_000: 0}}
			m, err := c.server(t, c.modelled(t, profile(t, c.gpu))).Run(t.Context(), w, forgetful{})
			if err != nil {
				t.Fatal(err)
			}
			if done := m.Summary().Completed; done != w.n {
				t.Fatalf("%d of %d requests completed", done, w.n)
			}
			if grown := int64(w.heap[10_000]) - int64(w.heap[2_000]); grown > 8_000*4*32 {
				t.Errorf("the live heap grew by %d KiB between 2,000 and 10,000 requests, from %d KiB",
					grown>>10, w.heap[2_000]>>10)
			} else {
				t.Logf("live heap %d KiB after 2,000 requests, %+d bytes after 10,000",
					w.heap[2_000]>>10, grown)
			}
		})
	}
}
