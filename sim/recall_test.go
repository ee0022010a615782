package sim

import (
	"math"
	"testing"
)

// Two requests, of nine tokens that hold 0.9 and of one that holds 0.5: tokens and
// requests are counted each by themselves.
func TestRecallOfTokensAndOfRequests(t *testing.T) {
	var nine, one recalled
	for range 9 {
		nine.token(0.9, 0.01)
	}
	one.token(0.5, 0.25)
	var sum recalls
	sum.add(&nine)
	sum.add(&one)
	sum.add(&recalled{}) // nothing decoded
	got := sum.proxy()
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"mean of tokens", got.Mean, 0.86},
		{"what nine of ten tokens hold", got.TokenP10, 0.9},
		{"mean of requests", got.RequestMean, 0.7},
		{"what nine of ten requests hold", got.RequestP10, 0.5},
		{"mean square missed", got.Missed2, 0.13},
	} {
		if math.Abs(c.got-c.want) > 1e-3 {
			t.Errorf("%s: %g, want %g", c.what, c.got, c.want)
		}
	}
}
