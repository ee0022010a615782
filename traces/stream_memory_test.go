package traces

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Making any number of requests takes constant memory.
func TestMixAllocatesNothing(t *testing.T) {
	s := open(t, 1, func(s *Spec) { s.Requests = math.MaxInt })
	if n := testing.AllocsPerRun(1000, func() {
		if _, _, err := s.Next(); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a request", n)
	}
}

// Reading a file takes memory for a record, not for the file.
func TestFileMemoryIsFlat(t *testing.T) {
	const n = 100_000
	for name, c := range map[string]struct{ head, record string }{
		"rows":    {"prompt_tokens,output_tokens,set\n", "1000,100,chat\n"},
		"objects": {"", `{"input_length": 1000, "output_length": 100, "timestamp": 5}` + "\n"},
		"conversations": {"", `{"conversations": [{"from": "human", "value": "What is it?"}, ` +
			`{"from": "gpt", "value": "It is 42."}]}` + "\n"},
	} {
		path := filepath.Join(t.TempDir(), "long")
		if err := os.WriteFile(path, []byte(c.head+strings.Repeat(c.record, n)), 0o600); err != nil {
			t.Fatal(err)
		}
		s := open(t, 1, func(s *Spec) { s.Trace, s.Requests = path, n })
		heap := func() uint64 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		before, made := heap(), 0
		for _, err := range s.All() {
			if err != nil {
				t.Fatal(err)
			}
			if made++; made == n/2 {
				if after := heap(); after > before+1<<20 {
					t.Errorf("%s: heap grew from %d to %d bytes over %d requests", name, before, after, made)
				}
			}
		}
		if made != n {
			t.Errorf("%s: %d requests, want %d", name, made, n)
		}
	}
}

func BenchmarkMix(b *testing.B) {
	for _, arrivals := range valuesOf("Arrivals")[:3] {
		b.Run(arrivals, func(b *testing.B) {
			s := open(b, 1, func(s *Spec) {
				s.Requests, s.Arrivals, s.Rate, s.Burstiness = math.MaxInt,
					arrivals, 1000, 2
			})
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := s.Next(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
