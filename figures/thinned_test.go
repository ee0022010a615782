package figures

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// All values are kept while they are few; of many, what is kept has their quantiles.
func TestThinned(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 1000, mostSampled, mostSampled + 1, 1_000_000} {
		s := sampled[float64](mostSampled)
		all := make([]float64, n)
		for i := range all {
			all[i] = math.Exp(draw.NormFloat64()) * (1 + float64(i)/1e6) // the queue grows
			s.add(all[i])
		}
		if n <= mostSampled && !slices.Equal(s.values, all) || len(s.values) > mostSampled {
			t.Errorf("%d of %d values are kept", len(s.values), n)
		}
		slices.Sort(all)
		slices.Sort(s.values)
		for q := 0.01; n > mostSampled && q < 1; q += 0.01 {
			at, _ := slices.BinarySearch(all, s.values[int(q*float64(len(s.values)))])
			if share := float64(at) / float64(n); math.Abs(share-q) > 0.005 {
				t.Errorf("the value at %.2f of the sample of %d is at %.4f of all", q, n, share)
			}
		}
	}
}
