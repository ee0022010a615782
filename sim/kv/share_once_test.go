package kv

import "testing"

// prefixed opens requests that have their first blocks in common, and has each select them all.
func prefixed(t testing.TB, c *Cache, seqs []*Seq, blocks int, keys []uint64) (loads int64) {
	for i := range seqs {
		seqs[i] = c.Open((blocks + 2) * c.Geo.BlockTokens)
		c.Adopt(seqs[i], blocks, keys)
		c.Extend(seqs[i], blocks*c.Geo.BlockTokens+1)
		if err := c.Segmented(seqs[i]); err != nil {
			t.Fatal(err)
		}
	}
	c.BeginStep(seqs)
	for _, l := range c.layers {
		for _, s := range seqs {
			for g := l.From; g < l.To; g++ {
				c.Access(s, g, &Selection{All: true})
			}
		}
		n, err := c.Fill(l)
		if err != nil {
			t.Fatal(err)
		}
		loads += n
	}
	return loads
}

// With room for everything a shared block is loaded once, whoever selects it, and is there until
// the last of its requests leaves. Opening and freeing requests allocates nothing.
func TestSharedBlocksAreLoadedOnce(t *testing.T) {
	geo := small(3, 2)
	const blocks = 10
	c, err := NewCache(Config{Geometry: geo, Sample: FullSample(geo), HBMBytes: 1 << 30,
		Eviction: LRU, Window: 4})
	if err != nil {
		t.Fatal(err)
	}
	keys := make([]uint64, blocks)
	for b := range keys {
		keys[b] = uint64(b + 1)
	}
	seqs := make([]*Seq, 3)
	groups := int64(geo.Groups())
	if got := prefixed(t, c, seqs, blocks, keys); got != blocks*groups {
		t.Errorf("%d loads, want each of %d blocks of %d groups once", got, blocks, groups)
	}
	if got := c.Stats().Joined; got != 2*blocks*groups {
		t.Errorf("%d misses found a block in HBM, want %d", got, 2*blocks*groups)
	}
	for i, s := range seqs {
		want := int64(blocks+len(seqs)-i) * groups // the prefix, and open blocks
		if got := c.Resident() / geo.BlockBytes; got != want {
			t.Errorf("with %d requests HBM holds %d blocks, want %d", len(seqs)-i, got, want)
		}
		c.Free(s)
	}
	if c.Resident() != 0 {
		t.Errorf("%d bytes in HBM after the last request", c.Resident())
	}
	if n := testing.AllocsPerRun(20, func() {
		prefixed(t, c, seqs, blocks, keys)
		for _, s := range seqs {
			c.Free(s)
		}
	}); n != 0 {
		t.Errorf("%v allocations for requests that share a prefix", n)
	}
}

// roomy is a cache of all heads with more slots than its test needs.
func roomy(t *testing.T, geo Geometry) *Cache {
	t.Helper()
	c, err := NewCache(Config{Geometry: geo, Sample: FullSample(geo), HBMBytes: 1 << 20,
		Eviction: LRU, Window: 4, Addressed: true})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A request that wrote what others adopt shares it with them, the blocks in HBM among it; one
// that wrote the same has a copy.
func TestOwnBlocksAreShared(t *testing.T) {
	geo := small(1, 1)
	c := roomy(t, geo)
	write := func() *Seq {
		s := c.Open(40)
		c.Extend(s, 13)
		s.Pin(0)
		c.Write(c.layers[0], s)
		if _, err := c.Fill(c.layers[0]); err != nil {
			t.Fatal(err)
		}
		c.Saved(s, 3)
		c.Unpin(s)
		c.Name(s, []uint64{1, 2, 3})
		return s
	}
	first, copied := write(), write()
	if got := c.Resident() / geo.BlockBytes; got != 8 {
		t.Fatalf("%d blocks in HBM of two requests that wrote 4 each", got)
	}
	s := []*Seq{nil}
	got := prefixed(t, c, s, 3, []uint64{1, 2, 3})
	if got != 0 || s[0].Slots(0)[2] != first.Slots(0)[2] {
		t.Errorf("%d loads of blocks that another request has in HBM, one in slot %d, there in %d", got,
			s[0].Slots(0)[2], first.Slots(0)[2])
	}
	c.Free(first)
	if err := c.Check(); err != nil || c.Resident()/geo.BlockBytes != 8 {
		t.Errorf("%d blocks in HBM, want 4 of the copy and 4 of what is left, %v",
			c.Resident()/geo.BlockBytes, err)
	}
	c.Free(copied)
	c.Free(s[0])
	if err := c.Check(); err != nil || c.Resident() != 0 || len(c.shares.known) != 0 {
		t.Errorf("%d bytes in HBM and %d keys are left, %v", c.Resident(), len(c.shares.known), err)
	}
}

// A chunked prefill has the slots of blocks that others have in HBM as soon as it writes, before
// the layer's decodes select, and loads none of them.
func TestWritesTakeUpWhatOthersHave(t *testing.T) {
	geo := small(1, 1)
	c := roomy(t, geo)
	keys := []uint64{1, 2, 3}
	var s [2]*Seq
	for i := range s {
		s[i] = c.Open(40)
		c.Adopt(s[i], 3, keys)
		c.Extend(s[i], 13)
		s[i].Pin(0)
		c.Write(c.layers[0], s[i])
		if i == 1 {
			for b := range keys {
				if !s[1].resident(0, b) || s[1].Slots(0)[b] != s[0].Slots(0)[b] {
					t.Errorf("block %d has no slot, or not that of the other request", b)
				}
			}
		}
		loads, err := c.Fill(c.layers[0])
		if want := []int64{3, 0}[i]; err != nil || loads != want {
			t.Errorf("request %d loads %d blocks, want %d, %v", i, loads, want, err)
		}
	}
	if got := c.Resident() / geo.BlockBytes; got != 5 {
		t.Errorf("HBM holds %d blocks of two requests that share 3 and wrote one each", got)
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}
