package metrics

import (
	"math"
	"testing"
)

// Two requests, of nine tokens that hold 0.9 and of one that holds 0.5: tokens and
// requests are counted each by themselves.
func TestRecallOfTokensAndOfRequests(t *testing.T) {
	var nine, one Recalled
	for range 9 {
		nine.Token(0.9, 0.01)
	}
	one.Token(0.5, 0.25)
	var sum recalls
	sum.add(&nine)
	sum.add(&one)
	sum.add(&Recalled{}) // nothing decoded
	got := sum.proxy()
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"mean of tokens", got.Mean, 0.86},
		{"P10 of tokens: rank 0.9 of 0.5, 0.9, ...", got.TokenP10, 0.86},
		{"mean of requests", got.RequestMean, 0.7},
		{"P10 of requests: rank 0.1 of 0.5, 0.9", got.RequestP10, 0.54},
		{"mean square missed", got.Missed2, 0.13},
	} {
		if math.Abs(c.got-c.want) > 1e-6 {
			t.Errorf("%s: %g, want %g", c.what, c.got, c.want)
		}
	}
}
