package live

import "testing"

// Slices cover all tokens, fit the buffers, and none is small.
func TestSlicesOfTheMLP(t *testing.T) {
	for tokens := 1; tokens < 5*mlpSlice; tokens += 7 {
		slices := 0
		for left := tokens; left > 0; slices++ {
			n := nextSlice(left)
			if n <= 0 || n > min(left, mlpSlice+mlpMore) || slices > 0 && n < mlpMore {
				t.Fatalf("%d tokens, %d left: a slice of %d", tokens, left, n)
			}
			left -= n
		}
		if most := (tokens + mlpSlice - 1) / mlpSlice; slices > most {
			t.Fatalf("%d tokens in %d slices, %d would do", tokens, slices, most)
		}
	}
}
