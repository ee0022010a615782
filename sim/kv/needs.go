package kv

// Full returns how many blocks of each group are full, and how many of them have reached DRAM.
func (s *Seq) Full() (full, saved int) { return s.full, s.saved }

// Reserved returns the bytes reserved for a request's metadata and buffers.
func (s *Seq) Reserved() int64 { return s.reserved }

// AtOnce returns how many groups' selections must be in HBM at once, of the whole model: those
// of the fullest layer. With one pool a layer every pool must fit that layer.
func (c *Cache) AtOnce() float64 {
	return float64(c.fullest()*len(c.pools)) / c.Sample.Rate
}

// Skew returns by how much what all groups hold fills the fullest pool above the average one: 1
// unless pools are per layer and the sample is uneven.
func (c *Cache) Skew() float64 {
	if len(c.pools) == 1 {
		return 1
	}
	return float64(c.fullest()*len(c.pools)) / float64(len(c.Sample.Groups))
}

// fullest returns the most groups that the sample has in one layer.
func (c *Cache) fullest() int {
	most := 0
	for i := range c.layers {
		most = max(most, c.layers[i].To-c.layers[i].From)
	}
	return most
}

// Held returns the bytes of blocks that cannot be evicted whether selected or not, of the whole
// model: those of one request, or of all for nil. All groups hold alike, so an uneven sample
// fills its fullest pool by Skew more.
func (c *Cache) Held(s *Seq) int64 {
	n := c.held
	if s != nil {
		n = s.held
	}
	return int64(float64(n)*c.Skew()/c.Sample.Rate+0.5) * c.Geo.BlockBytes
}

// Rounding is the most bytes by which whole slots exceed what was asked for.
func (c *Cache) Rounding() int64 { return c.scale(int64(len(c.pools))) * c.Geo.BlockBytes }

// Resident returns the bytes of all blocks in HBM.
func (c *Cache) Resident() int64 {
	var n int64
	for i := range c.pools {
		n += int64(c.pools[i].used)
	}
	return c.scale(n) * c.Geo.BlockBytes
}
