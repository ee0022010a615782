//go:build gpu

package cuda

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// gpu is one test's memory on GPU 0, given back at the end.
type gpu struct {
	*Session
	t       testing.TB
	r       *rand.Rand
	release []func() error
}

// onGPU runs a test on the library's thread. A machine without library or GPU fails it: this suite
// is only built to run on one.
func onGPU(t testing.TB, f func(g *gpu)) {
	t.Helper()
	lib, err := Open("")
	if err != nil {
		t.Fatal(err)
	}
	defer lib.Close()
	err = lib.Do(func(s *Session) error {
		if err := s.Init(0); err != nil {
			return err
		}
		g := &gpu{Session: s, t: t, r: rand.New(rand.NewPCG(20, 26))}
		f(g)
		if err := s.DeviceSync(); err != nil {
			return err
		}
		for _, free := range g.release {
			if err := free(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// must ends the test at an error.
func (g *gpu) must(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

// device returns n bytes of poisoned device memory: 0xff is NaN in fp16 and fp32 and -1 as an
// index.
func (g *gpu) device(bytes int64) Ptr {
	g.t.Helper()
	bytes = max(bytes, 16)
	p, err := g.DeviceAlloc(bytes)
	g.must(err)
	g.must(g.Launch(&MemsetArgs{Dst: p, Bytes: bytes, Value: 0xff}, 0))
	g.must(g.StreamSync(0))
	g.release = append(g.release, func() error { return g.DeviceFree(p) })
	return p
}

func (g *gpu) zeroed(bytes int64) Ptr {
	p := g.device(bytes)
	g.must(g.Launch(&MemsetArgs{Dst: p, Bytes: max(bytes, 16)}, 0))
	g.must(g.StreamSync(0))
	return p
}

func (g *gpu) host(bytes int64, pages HostPages) HostMemory {
	g.t.Helper()
	m, err := g.HostAlloc(bytes, pages)
	g.must(err)
	for i := range m.Bytes() {
		m.Bytes()[i] = 0xff
	}
	g.release = append(g.release, func() error { return g.HostFree(m) })
	return m
}

func upload[T any](g *gpu, data []T) Ptr {
	g.t.Helper()
	var one T
	p := g.device(int64(len(data)) * int64(unsafe.Sizeof(one)))
	g.must(Upload(g.Session, p, data))
	return p
}

func download[T any](g *gpu, p Ptr, n int) []T {
	g.t.Helper()
	data := make([]T, n)
	g.must(g.DeviceSync())
	g.must(Download(g.Session, data, p))
	return data
}

// normal returns values rounded to fp16 as both sides see them.
func (g *gpu) normal(n int, scale float64) ([]Half, []float64) {
	h, f := make([]Half, n), make([]float64, n)
	for i := range h {
		h[i] = HalfOf(scale * g.r.NormFloat64())
		f[i] = h[i].Float()
	}
	return h, f
}

// near compares vectors of length dim by |got - want| / |want|: each below rowLimit, all together
// below limit. NaN never passes.
func (g *gpu) near(what string, got, want []float64, dim int, limit, rowLimit float64) {
	g.t.Helper()
	if len(got) != len(want) {
		g.t.Errorf("%s: %d values, want %d", what, len(got), len(want))
		return
	}
	var diff, size float64
	for row := 0; row < len(want); row += dim {
		var d, s float64
		for i := row; i < row+dim; i++ {
			d += (got[i] - want[i]) * (got[i] - want[i])
			s += want[i] * want[i]
		}
		if !(math.Sqrt(d) <= rowLimit*math.Sqrt(s)) {
			g.t.Errorf("%s: row %d is off by %.2g of its length %.3g", what, row/dim, math.Sqrt(d/s),
				math.Sqrt(s))
			return
		}
		diff, size = diff+d, size+s
	}
	if !(math.Sqrt(diff) <= limit*math.Sqrt(size)) {
		g.t.Errorf("%s: off by %.2g", what, math.Sqrt(diff/size))
	}
}
