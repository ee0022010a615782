package kv

import (
	"testing"
)

// While a chunked prefill runs, blocks that reach DRAM stay held: the next
// chunk attends to them.
func TestSavedBlocksOfARunningPrefillStayHeld(t *testing.T) {
	geo := small(2, 1)
	c, err := NewCache(Config{Geometry: geo, Sample: FullSample(geo), HBMBytes: 100 * geo.BlockBytes,
		Eviction: "lru", Window: 2})
	if err != nil {
		t.Fatal(err)
	}
	s := c.Open(100)
	c.Extend(s, 40)
	c.BeginStep(nil)
	s.Pin(0)
	for _, l := range c.Layers() {
		c.Write(l, s)
		if _, err := c.Fill(l); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		what string
		do   func()
		held int64 // blocks a group
	}{
		{"written", func() {}, 10},
		{"six saved", func() { c.Saved(s, 6) }, 10},
		{"set back", func() { c.Unpin(s) }, 4},
		{"all saved", func() { c.Saved(s, 10) }, 0},
	} {
		step.do()
		if got := c.Held(s) / geo.BlockBytes / 2; got != step.held {
			t.Errorf("%s: %d blocks a group are held, want %d", step.what, got, step.held)
		}
	}
}

// Three groups over two layers: two of them are in one layer, whose selections
// must be in HBM together; a pool of that layer alone holds twice the other's.
func TestNeedsOfAnUnevenSample(t *testing.T) {
	geo := small(2, 4)
	for _, c := range []struct {
		sample       Sample
		perLayer     bool
		atOnce, skew float64
	}{
		{FullSample(geo), false, 4, 1},
		{FullSample(geo), true, 8, 1},
		{Sample{[]int32{0, 1, 4}, 3. / 8}, false, 2 / (3. / 8), 1},
		{Sample{[]int32{0, 1, 4}, 3. / 8}, true, 4 / (3. / 8), 4. / 3},
	} {
		cache, err := NewCache(Config{Geometry: geo, Sample: c.sample, HBMBytes: 80 * geo.BlockBytes,
			Eviction: "lru", Window: 1, PerLayer: c.perLayer})
		if err != nil {
			t.Fatal(err)
		}
		if a, s := cache.AtOnce(), cache.Skew(); a != c.atOnce || s != c.skew {
			t.Errorf("%d groups, a pool a layer %v: %v at once, skew %v; want %v and %v",
				len(c.sample.Groups), c.perLayer, a, s, c.atOnce, c.skew)
		}
		three := cache.Open(12)
		cache.Extend(three, 12)
		for _, l := range cache.Layers() {
			cache.Write(l, three)
		}
		if got, want := cache.Held(three)/geo.BlockBytes, int64(3*8*c.skew); got != want {
			t.Errorf("%d groups, a pool a layer %v: three blocks of each hold %d, want %d",
				len(c.sample.Groups), c.perLayer, got, want)
		}
	}
}
