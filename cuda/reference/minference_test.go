package reference

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// The lists of a row see what its lines cross: every key of a line at any of its queries, no
// key twice, and besides the rest of the blocks only.
func TestMergedLinesSeeTheirLines(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	for range 300 {
		end := 64 * (1 + r.IntN(40))
		end += r.IntN(64)
		pick := func(n int) []int32 {
			list := make([]int32, n)
			for i := range list {
				list[i] = int32(r.IntN(end + 100))
			}
			slices.Sort(list)
			return slices.Compact(list)
		}
		vertical, slash := pick(r.IntN(50)), pick(r.IntN(30))
		lists := MergeLines(vertical, slash, end)
		seen := map[int]int{}
		for _, b := range lists.Blocks {
			for i := range miBlock {
				seen[int(b)+i]++
			}
		}
		for _, c := range lists.Columns {
			seen[int(c)]++
		}
		for key, times := range seen {
			if times != 1 {
				t.Fatalf("key %d is seen %d times of %v, %v at %d", key, times, vertical, slash, end)
			}
		}
		for _, v := range vertical {
			if int(v) < end && seen[int(v)] == 0 {
				t.Fatalf("column %d is not seen", v)
			}
		}
		for query := max(0, end-miBlock); query < end; query++ {
			for _, s := range slash {
				if key := query - int(s); key >= 0 && seen[key] == 0 {
					t.Fatalf("key %d at distance %d of query %d is not seen", key, s, query)
				}
			}
		}
	}
}

func TestTileListsPartBlocksByHalf(t *testing.T) {
	blocks, columns, counts := TileLists(RowLists{Blocks: []int32{0, 64, 300},
		Columns: []int32{200, 250}},
		RowLists{Blocks: []int32{64, 364}, Columns: []int32{10, 250}})
	if !slices.Equal(blocks, []int32{64, 0, 300, 364}) || counts != [4]int32{1, 2, 1, 3} {
		t.Errorf("blocks %v, counts %v", blocks, counts)
	}
	want := []int32{10 | 1<<30, 200 | -1<<31, 250}
	if !slices.Equal(columns, want) {
		t.Errorf("columns %x, want %x", columns, want)
	}
}

func TestLineWeightsSumToQueries(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	p := Prefill{Shape: Shape{Batch: 1, HeadsQ: 2, HeadsKV: 1, Dim: 8}, QTokens: 70, Prefix: 5,
		Scale: 0.3}
	for range 70 * 2 * 8 {
		p.Q = append(p.Q, r.NormFloat64())
	}
	for range 75 * 8 {
		p.K = append(p.K, r.NormFloat64())
	}
	vertical, slash := p.LineWeights(1)
	var v, s float64
	for i := range vertical {
		v, s = v+vertical[i], s+slash[i]
	}
	if v < 64-1e-9 || v > 64+1e-9 || s < 64-1e-9 || s > 64+1e-9 {
		t.Errorf("%v and %v, want 64 queries' weights", v, s)
	}
}

func TestPoolAndTopBlocks(t *testing.T) {
	x := make([]float64, 130)
	for i := range x {
		x[i] = float64(i)
	}
	if got := Pool(x, 1); !slices.Equal(got, []float64{31.5, 95.5, 128.5}) {
		t.Errorf("means %v", got)
	}
	if got := TopBlocks([]float64{1, 3, 2, 3, 9}, 1, 100, 130, 2); !slices.Equal(got,
		[]int32{64, 192}) {
		t.Errorf("blocks %v", got)
	}
}
