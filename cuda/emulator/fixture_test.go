package emulator

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"github.com/sparseserve/sparseserve/cuda"
)

// fixture is a machine under test, the emulator or a GPU, and the program that uses it.
type fixture struct {
	machine
	emulated *Machine // nil: a GPU
	t        *testing.T
	r        *rand.Rand
	release  []func() error // memory of a GPU
}

type machine interface {
	cuda.Machine
	DeviceSync() error
}

func newFixture(t *testing.T, c Config) *fixture {
	m := New(c)
	t.Cleanup(m.Close)
	return &fixture{machine: m, emulated: m, t: t, r: rand.New(rand.NewPCG(20, 26))}
}

func (g *fixture) must(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

// device returns device memory that holds NaN.
func (g *fixture) device(bytes int) cuda.Ptr {
	g.t.Helper()
	return g.allocated(int64(max(bytes, 16)))
}

func (g *fixture) allocated(bytes int64) cuda.Ptr {
	g.t.Helper()
	p, err := g.DeviceAlloc(bytes)
	g.must(err)
	if g.emulated == nil {
		g.release = append(g.release, func() error { return g.DeviceFree(p) })
		g.must(g.Launch(&cuda.MemsetArgs{Dst: p, Bytes: bytes, Value: 0xff}, 0))
		g.must(g.StreamSync(0))
	}
	return p
}

func (g *fixture) zeroed(bytes int64) cuda.Ptr {
	g.t.Helper()
	p := g.device(int(bytes))
	g.must(g.Launch(&cuda.MemsetArgs{Dst: p, Bytes: bytes}, 0))
	g.must(g.StreamSync(0))
	return p
}

func (g *fixture) host(bytes int) cuda.HostMemory {
	g.t.Helper()
	m, err := g.HostAlloc(int64(max(bytes, 16)), cuda.DriverPages)
	g.must(err)
	return m
}

func (g *fixture) stream() cuda.Stream {
	g.t.Helper()
	s, err := g.StreamCreate(false)
	g.must(err)
	return s
}

func (g *fixture) event() cuda.Event {
	g.t.Helper()
	e, err := g.EventCreate(true)
	g.must(err)
	return e
}

// pinned returns pinned memory that holds data.
func pinned[T any](g *fixture, data []T) cuda.HostMemory {
	g.t.Helper()
	var one T
	m := g.host(len(data) * int(unsafe.Sizeof(one)))
	copy(cuda.Slice[T](m), data)
	return m
}

// upload returns device memory that holds exactly data, so that reading one value more is a fault.
func upload[T any](g *fixture, data []T) cuda.Ptr {
	g.t.Helper()
	var one T
	bytes := len(data) * int(unsafe.Sizeof(one))
	if bytes == 0 {
		return g.device(16)
	}
	p := g.allocated(int64(bytes))
	from := pinned(g, data)
	g.must(g.Launch(&cuda.MemcpyArgs{Dst: p, Src: from.Ptr(), Bytes: int64(bytes)}, 0))
	g.must(g.StreamSync(0))
	g.must(g.HostFree(from))
	return p
}

func download[T any](g *fixture, p cuda.Ptr, n int) []T {
	g.t.Helper()
	var one T
	bytes := n * int(unsafe.Sizeof(one))
	to := g.host(bytes)
	g.must(g.DeviceSync())
	g.must(g.Launch(&cuda.MemcpyArgs{Dst: to.Ptr(), Src: p, Bytes: int64(bytes)}, 0))
	g.must(g.StreamSync(0))
	data := append([]T(nil), cuda.Slice[T](to)[:n]...)
	g.must(g.HostFree(to))
	return data
}

// normal returns values rounded to fp16 as both sides see them.
func (g *fixture) normal(n int, scale float64) ([]cuda.Half, []float64) {
	h := make([]cuda.Half, n)
	for i := range h {
		h[i] = cuda.HalfOf(scale * g.r.NormFloat64())
	}
	return h, cuda.Floats(h)
}

// near compares with values that were not rounded: at most one rounding to fp16 away. NaN never
// passes.
func (g *fixture) near(what string, got, want []float64) {
	g.t.Helper()
	if len(got) != len(want) {
		g.t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i := range want {
		if d := math.Abs(got[i] - want[i]); !(d <= math.Abs(want[i])*0x1p-11+0x1p-25) &&
			got[i] != want[i] {
			g.t.Fatalf("%s: value %d is %g, want %g", what, i, got[i], want[i])
		}
	}
}

// close is near of an emulator. On a GPU it compares vectors of length dim by |got - want| /
// |want|: each below 4e-3, all together below 1e-3.
func (g *fixture) close(what string, got, want []float64, dim int) {
	g.t.Helper()
	if g.emulated != nil {
		g.near(what, got, want)
		return
	}
	var diff, size float64
	for row := 0; row < len(want); row += dim {
		var d, s float64
		for i := row; i < row+dim; i++ {
			d += (got[i] - want[i]) * (got[i] - want[i])
			s += want[i] * want[i]
		}
		if !(math.Sqrt(d) <= 4e-3*math.Sqrt(s)) {
			g.t.Fatalf("%s: row %d is off by %.2g of its length %.3g", what, row/dim, math.Sqrt(d/s),
				math.Sqrt(s))
		}
		diff, size = diff+d, size+s
	}
	if !(math.Sqrt(diff) <= 1e-3*math.Sqrt(size)) {
		g.t.Fatalf("%s: off by %.2g", what, math.Sqrt(diff/size))
	}
}

// faults wants a Fault of this argument with this reason.
func faults(t *testing.T, what string, err error, arg, why string) {
	t.Helper()
	var f *Fault
	if !errors.As(err, &f) || f.Arg != arg || !strings.Contains(f.Why, why) ||
		!errors.Is(err, cuda.Failed) {
		t.Errorf("%s: %v; want a fault of %s: %s", what, err, arg, why)
	}
}

func dot(a, b []float64) (sum float64) {
	for i, x := range a {
		sum += x * b[i]
	}
	return sum
}
