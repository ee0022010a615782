package live

import "testing"

// The rows of a layer's linears fit the step's buffers, and the rows of slices do not overlap.
func TestRowsOfTheMLPFit(t *testing.T) {
	c := Config{LinearRows: func(tokens int) int { return padded(tokens) + LinearGrid }}
	for tokens := 1; tokens < 5*mlpSlice; tokens += 7 {
		all := c.rows(tokens)
		for from, n := 0, 0; from < tokens; from += n {
			n = nextSlice(tokens - from)
			rows := c.sliceRows(n, tokens)
			if rows < n || from+rows > all || rows > min(all, mlpSlice+mlpMore) ||
				from+n < tokens && rows > n {
				t.Fatalf("%d of %d tokens, from %d: %d rows in buffers of %d", n, tokens, from, rows, all)
			}
			if n == tokens && rows != all {
				t.Fatalf("%d tokens in one slice have %d rows, their other linears %d", n, rows, all)
			}
		}
	}
}

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
