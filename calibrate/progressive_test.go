package calibrate

import (
	"slices"
	"testing"
)

// The rounds of lists as points have them: a quarter of the longest in the mean, none
// empty, each round no more lists than the one before.
func TestUnevenRounds(t *testing.T) {
	for _, lists := range []int64{4, 32, 512} {
		sum := int64(0)
		rounds := unevenRounds(lists, 12)
		for i, n := range rounds {
			if n < 1 || n > 12 || i > 0 && n < rounds[i-1] {
				t.Errorf("%d lists: %v", lists, rounds)
			}
			sum += n
		}
		if share := float64(sum) / float64(12*lists); rounds[lists-1] != 12 || share < 0.2 ||
			share > 0.45 {
			t.Errorf("%d lists: the longest has %d rounds of 12, all %.2f of it", lists, rounds[lists-1],
				share)
		}
	}
	m, err := shapeModel("llama3-8b")
	must(err)
	if got := reach(point(probePSAUneven, "llama3-8b", 1, 2048, 16), m); !slices.Equal(
		got, []int{8, 3, 2, 1}) {
		t.Errorf("lists of each round: %v", got)
	}
}
