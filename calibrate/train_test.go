package calibrate

import (
	"slices"
	"testing"
)

// The clock reads the linears of the repetition that began nearest to the sampled time.
func TestTrainPoints(t *testing.T) {
	t.Parallel()
	groups := []trainGroup{{0, 1}, {0.004, 2}, {0.009, 3}, {0.014, 4}}
	for ms, want := range map[int64]int{1: 0, 3: 1, 6: 1, 7: 2, 200: 3} {
		if i := trainAt(groups, point(probeClock, shapes[0], clockTokens, ms)); i != want {
			t.Errorf("after %d ms: group %d, want %d", ms, i, want)
		}
	}
}

// A sample of the clock is the mean of its rounds, each dealt once.
func TestDealtMeans(t *testing.T) {
	t.Parallel()
	if got := dealtMeans([]float64{1, 2, 3, 4, 11, 12, 13, 14}, 4); !slices.Equal(
		got, []float64{6, 7, 8, 9}) {
		t.Errorf("means %v", got)
	}
}
