package live_test

import (
	"math"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/cuda/reference"
)

// attended has the reference attend to what the model chose, and compares it with the server's
// lists where those are imposed.
func (r *run) attended(t *testing.T) {
	t.Helper()
	for p, chosen := range r.chosen {
		listed, ok := r.lists[p]
		if r.spec.Offload.On != ok {
			t.Fatalf("%+v: lists from the server: %v", p, ok)
		}
		if ok && !slices.Equal(sortedInts(listed), sortedInts(chosen)) {
			t.Fatalf("%+v: the model chose %v, attention reads %v", p, chosen, listed)
		}
		r.lists[p] = chosen
	}
}

func sortedInts(x []int) []int {
	x = slices.Clone(x)
	slices.Sort(x)
	return x
}

// judge compares the blocks that the metadata kernels chose with the best blocks by float64 digests
// of the reference's own keys. That proves the digests right, whose choice counts for nothing while
// selections are imposed.
type judge struct {
	*run
	seen, same int // choices among more blocks than fit; choices equal to the reference's
	// pairs of a chosen block and another; pairs whose scores rounding cannot swap
	apart, compare int
}

func newJudge(r *run) *judge { return &judge{run: r} }

func (j *judge) see(t *testing.T, p place, query, keys []float64) {
	chosen, ok := j.chosen[p]
	if !ok {
		return
	}
	dim, heads, size := j.shape.HeadDim, j.shape.KVHeads, j.spec.BlockTokens
	blocks := p.position/size + 1
	if want := min(blocks, j.spec.Selection.BudgetTokens/size); len(chosen) != want {
		t.Fatalf("%+v: %d blocks chosen of %d, want %d", p, len(chosen), blocks, want)
	}
	scores, largest := make([]float64, blocks), 0.0
	for b := range p.position / size { // full before this token
		var block []float64
		for i := b * size; i < (b+1)*size; i++ {
			block = append(block, keys[(i*heads+p.head)*dim:][:dim]...)
		}
		hi, lo := reference.Digest(block, dim)
		scores[b] = reference.Score(query, hi, lo)
		sum := 0.0
		for i, q := range query {
			sum += math.Abs(q) * math.Max(math.Abs(hi[i%dim]), math.Abs(lo[i%dim]))
		}
		largest = math.Max(largest, sum*float64(dim)/float64(len(query)))
	}
	tolerance := 2e-3 * largest // of fp16: in the digests, and in what queries and keys came from
	best := reference.TopK(scores, len(chosen), j.spec.Selection.SinkBlocks,
		j.spec.Selection.RecentBlocks)
	if blocks == len(chosen) {
		return
	}
	j.seen++
	want := make([]int, len(best))
	for i, b := range best {
		want[i] = int(b)
	}
	if slices.Equal(sortedInts(want), sortedInts(chosen)) {
		j.same++
	}
	forced := func(b int) bool {
		return b < j.spec.Selection.SinkBlocks ||
			b >= blocks-j.spec.Selection.RecentBlocks
	}
	for b := range blocks {
		if forced(b) && !slices.Contains(chosen, b) {
			t.Fatalf("%+v: block %d of %d is a sink or of the window, and not among %v", p, b,
				blocks, chosen)
		}
		for _, c := range chosen {
			if slices.Contains(chosen, b) || forced(c) {
				continue
			}
			j.compare++
			if math.Abs(scores[b]-scores[c]) > tolerance {
				j.apart++
			}
			if scores[b] > scores[c]+tolerance {
				t.Errorf("%+v: block %d was chosen with a score of %.4g, and not %d with %.4g", p, c, scores[c],
					b, scores[b])
			}
		}
	}
}

func (j *judge) check(t *testing.T) {
	t.Helper()
	if !j.spec.Sparse() {
		return
	}
	if j.seen < j.fewest() || j.same < j.seen*9/10 || j.apart < j.compare*9/10 {
		t.Errorf("of %d choices %d are the reference's; of %d pairs of blocks %d are far enough apart",
			j.seen, j.same, j.compare, j.apart)
	}
}

// fewest is how many choices a run is to have among more blocks than fit.
func (j *judge) fewest() int {
	if j.lengths == nil {
		return 50
	}
	return 10
}
