package calibrate

import (
	"math/rand/v2"
	"testing"
)

// Drawn numbers are distinct, within bounds and not in order; of all there are, all are drawn.
func TestDistinct(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct{ count, n int64 }{{1, 1}, {50, 50}, {40, 50}, {25, 50},
		{100, 1 << 40}} {
		seen, rises := map[int64]bool{}, 0
		last := int64(-1)
		for _, i := range distinct(r, c.count, c.n) {
			if i < 0 || i >= c.n || seen[i] {
				t.Fatalf("%d of %d: %d is drawn twice or out of bounds", c.count, c.n, i)
			}
			if i > last {
				rises++
			}
			seen[i], last = true, i
		}
		if int64(len(seen)) != c.count {
			t.Errorf("%d of %d: %d drawn", c.count, c.n, len(seen))
		}
		if c.count > 10 && int64(rises) > c.count*3/4 {
			t.Errorf("%d of %d: %d times more than the one before", c.count, c.n, rises)
		}
	}
}
