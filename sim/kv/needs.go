package kv

// Full returns the number of full blocks in each group, and how many have been saved to DRAM.
func (s *Seq) Full() (full, saved int) { return s.full, s.saved }

// Reserved returns the bytes reserved for a request's metadata and buffers.
func (s *Seq) Reserved() int64 { return s.reserved }

// AtOnce returns the number of groups whose selections must be in HBM at the same time, for the
// whole model: the groups of the fullest layer. With one pool per layer every pool must fit
// that layer.
func (c *shape) AtOnce() float64 {
	return float64(c.fullest()*len(c.pools)) / c.Sample.Rate
}

// Skew returns the ratio of the fullest pool's fill to the average one's, if all groups hold
// the same amount. It is 1 unless pools are per layer and the sample is uneven.
func (c *shape) Skew() float64 {
	if len(c.pools) == 1 {
		return 1
	}
	return float64(c.fullest()*len(c.pools)) / float64(len(c.Sample.Groups))
}

// fullest returns the largest number of sampled groups in one layer.
func (c *shape) fullest() int {
	most := 0
	for i := range c.layers {
		most = max(most, c.layers[i].To-c.layers[i].From)
	}
	return most
}

// Held returns the bytes of blocks that are pinned regardless of selection, for the whole
// model: the blocks of one request, or of all requests if s is nil. All groups hold the same
// amount, so an uneven sample fills its fullest pool by a factor Skew.
func (c *Cache) Held(s *Seq) int64 {
	n := c.held
	if s != nil {
		n = s.held
	}
	return int64(float64(n)*c.Skew()/c.Sample.Rate+0.5) * c.Geo.BlockBytes
}

// Rounding is the largest excess in bytes of whole slots over the requested bytes.
func (c *shape) Rounding() int64 { return c.Scale(int64(len(c.pools))) * c.Geo.BlockBytes }

// Resident returns the bytes of all blocks in HBM.
func (c *shape) Resident() int64 {
	var n int64
	for i := range c.pools {
		n += int64(c.pools[i].used)
	}
	return c.Scale(n) * c.Geo.BlockBytes
}
