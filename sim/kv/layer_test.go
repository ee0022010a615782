package kv

import "testing"

// Few requests are divided finely enough for several threads, many into parts of PartGroups; every
// group is in one part.
func TestSplitPartsFollowTheirNumber(t *testing.T) {
	for _, x := range []struct{ heads, seqs, parts, most int }{
		{8, 1, 4, 2}, {8, 2, 8, 2}, {8, 4, 16, 2}, {8, 6, 18, 3}, {8, 12, 24, 4}, {8, 8, 16, 4},
		{8, 16, 16, 8}, {8, 24, 24, 8}, {32, 1, 16, 2}, {32, 3, 18, 6}, {32, 8, 32, 8},
		{2, 1, 1, 2}, {1, 5, 5, 1}, {7, 5, 15, 3}, {10, 5, 15, 4},
	} {
		geo := small(1, x.heads)
		c, err := NewCache(Config{Geometry: geo, Sample: FullSample(geo), Eviction: LRU,
			HBMBytes: 1 << 20, Window: 1, Addressed: true})
		if err != nil {
			t.Fatal(err)
		}
		var seqs []*Seq
		for range x.seqs {
			seqs = append(seqs, nil)
		}
		parts := c.Split(c.Layers()[0], seqs, nil)
		if parts != x.parts {
			t.Errorf("%d requests of %d heads: %d parts, want %d", x.seqs, x.heads, parts, x.parts)
		}
		seen, most := map[[2]int]int{}, 0
		for i := range parts {
			req, from, to := c.Part(i)
			most = max(most, to-from)
			for g := from; g < to; g++ {
				seen[[2]int{req, g}]++
			}
		}
		if most != x.most || len(seen) != x.seqs*x.heads {
			t.Errorf("%d requests of %d heads: parts of up to %d groups, want %d; %d groups of %d",
				x.seqs, x.heads, most, x.most, len(seen), x.seqs*x.heads)
		}
		for g, n := range seen {
			if n != 1 {
				t.Errorf("%d requests of %d heads: group %v is in %d parts", x.seqs, x.heads, g, n)
			}
		}
	}
}
