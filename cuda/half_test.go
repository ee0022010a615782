package cuda

import (
	"math"
	"testing"
)

func TestHalfRoundTripsEveryValue(t *testing.T) {
	for i := range 1 << 16 {
		h := Half(i)
		x := h.Float()
		if math.IsNaN(x) {
			if !math.IsNaN(HalfOf(x).Float()) {
				t.Fatalf("%#04x: NaN is lost", i)
			}
			continue
		}
		if got := HalfOf(x); got != h {
			t.Fatalf("%#04x is %g, which becomes %#04x", i, x, got)
		}
	}
}

func TestHalfRoundsToNearestEven(t *testing.T) {
	for _, c := range []struct {
		x    float64
		want Half
	}{
		{1, 0x3c00}, {-2, 0xc000}, {1 + 0x1p-11, 0x3c00}, {1 + 3*0x1p-11, 0x3c02},
		{1 + 0x1p-11 + 0x1p-40, 0x3c01}, {2047.9999, 0x6800},
		{65504, 0x7bff}, {65519.9, 0x7bff}, {65520, 0x7c00}, {0x1p-24, 1}, {0x1p-25, 0},
		{math.Inf(-1), 0xfc00},
	} {
		if got := HalfOf(c.x); got != c.want {
			t.Errorf("%g becomes %#04x, want %#04x", c.x, got, c.want)
		}
	}
}

// Between any two neighbours: the middle goes to the even one, all else to the nearer.
func TestHalfRoundsEveryInterval(t *testing.T) {
	for h := range Half(0x7bff) {
		low, high := h.Float(), (h + 1).Float()
		middle, even := (low+high)/2, h+h&1
		for _, c := range []struct {
			x    float64
			want Half
		}{{middle, even}, {math.Nextafter(middle, low), h}, {math.Nextafter(middle, high), h + 1},
			{-middle, even | 0x8000}} {
			if got := HalfOf(c.x); got != c.want {
				t.Fatalf("%g becomes %#04x, want %#04x", c.x, got, c.want)
			}
		}
	}
}

func BenchmarkHalfOf(b *testing.B) {
	x := make([]float32, 1<<16)
	for i := range x {
		x[i] = float32(math.Sin(float64(i))) / 30
	}
	b.SetBytes(int64(4 * len(x)))
	var sink Half
	for b.Loop() {
		for _, v := range x {
			sink ^= HalfOf(float64(v))
		}
	}
	_ = sink
}
