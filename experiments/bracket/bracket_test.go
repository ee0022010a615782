package bracket_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/experiments/bracket"
)

// Wherever it starts, a search ends with the border within a narrow bracket.
func TestFindEndsAtTheBorder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := bracket.Line{Start: rapid.Float64Range(0.01, 100).Draw(t, "start"), Least: 1e-6, Most: 1e6,
			Width: 0.02, Geometric: rapid.Bool().Draw(t, "geometric")}
		border := rapid.Float64Range(0.01, 100).Draw(t, "border")
		tried, err := l.Find(nil, func(at float64, _ bool) (bool, error) { return at < border, nil })
		low, high := bracket.Ends(tried)
		if err != nil || low >= border || high < border || high-low > l.Width*low {
			t.Fatalf("%g to %g of %g (%v), tried %v", low, high, border, err, tried)
		}
	})
}

// Whole numbers: the fewest of 1 to 40 that suffice, from either end.
func TestFindWholeNumbers(t *testing.T) {
	for _, start := range []float64{1, 40} {
		for fewest := 1.0; fewest <= 41; fewest++ {
			l := bracket.Line{Start: start, Least: 1, Most: 40, Round: math.Floor}
			tried, err := l.Find(nil, func(n float64, _ bool) (bool, error) { return n < fewest, nil })
			low, high := bracket.Ends(tried)
			want := fewest
			if fewest > 40 {
				want = math.Inf(1)
			}
			if err != nil || high != want || low != math.Min(fewest-1, 40) {
				t.Errorf("from %g: %g to %g, want %g", start, low, high, fewest)
			}
		}
	}
}

// A search that is known to have values goes on from them, and an error ends it.
func TestFindGoesOn(t *testing.T) {
	l := bracket.Line{Most: 100, Width: 0.3, Geometric: true}
	var tried []string
	known := []bracket.Tried{{At: 1, Below: true}}
	_, err := l.Find(known, func(at float64, in bool) (bool, error) {
		tried = append(tried, fmt.Sprintf("%.3g %v", at, in))
		return at < 5, nil
	})
	want := "[2 false 4 false 8 false 5.66 true 4.76 true]"
	if err != nil || fmt.Sprint(tried) != want {
		t.Errorf("%v, want %s (%v)", tried, want, err)
	}
	fault := errors.New("no")
	if _, err := l.Find(nil, func(float64, bool) (bool, error) { return false, fault }); err != fault {
		t.Error(err)
	}
}

// A value below the border beyond one above it: the bracket is the lower one.
func TestTurned(t *testing.T) {
	tried := []bracket.Tried{{1, true}, {4, false}, {8, true}, {2, true}}
	if low, high := bracket.Ends(tried); low != 2 || high != 4 {
		t.Errorf("%g to %g", low, high)
	}
	if below, above, ok := bracket.Turned(tried); below != 8 || above != 4 || !ok {
		t.Errorf("%g below, %g above, %v", below, above, ok)
	}
	if _, _, ok := bracket.Turned(tried[:2]); ok {
		t.Error("turned")
	}
}

// The sides of a range in which the answer is unknown are each within 2 %.
func TestCross(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := bracket.Line{Width: 0.02, Geometric: true}
		fails := rapid.Float64Range(1.1, 90).Draw(t, "fails")
		holds := fails * rapid.Float64Range(1, 5).Draw(t, "unknown")
		values := []float64{1, 3, 10, 30, 100}
		low, high, err := l.Cross(values, func(at float64) (bracket.Verdict, error) {
			switch {
			case at < fails:
				return bracket.Fails, nil
			case at >= holds:
				return bracket.Holds, nil
			}
			return bracket.Undecided, nil
		})
		if err != nil || low >= fails || low < fails/1.021 {
			t.Fatalf("%g to %g, want %g to %g (%v)", low, high, fails, holds, err)
		}
		if holds <= 100 && (high < holds || high > holds*1.021) {
			t.Fatalf("%g to %g, want %g to %g", low, high, fails, holds)
		}
	})
}
