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

// Reading a file takes memory for a line, not for the file.
func TestFileMemoryIsFlat(t *testing.T) {
	const n = 200_000
	var b strings.Builder
	b.WriteString("arrived_s,prompt_tokens,output_tokens,set\n")
	for range n {
		b.WriteString("1.5,1000,100,chat\n")
	}
	path := filepath.Join(t.TempDir(), "long.csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	b.Reset()
	s := open(t, 1, func(s *Spec) { s.Trace, s.Requests, s.Arrivals = path, n, ArrivalsTrace })
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, made := heap(), 0
	for range requests(t, s) {
		if made++; made == n/2 {
			if after := heap(); after > before+1<<20 {
				t.Errorf("heap grew from %d to %d bytes over %d requests", before, after, made)
			}
		}
	}
	if made != n {
		t.Errorf("%d requests, want %d", made, n)
	}
}

func BenchmarkMix(b *testing.B) {
	for _, arrivals := range arrivalNames[:3] {
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
