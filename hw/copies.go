package hw

import "math"

// copies is what one memcpy a block costs beside the bytes.
type copies struct {
	base, call, long, half, start, whole float64

	pools curve // bytes of the host pool, seconds: call, where given by pool
}

func newCopies(base, call, long, half, start, whole Figure, pools []PoolTime) copies {
	c := copies{base: base.optional(), call: call.SI(), long: long.optional(), half: half.optional(), start: start.optional(), whole: whole.optional()}
	for _, r := range pools {
		c.pools.add(r.PoolGiB*(1<<30), r.SI())
	}
	return c
}

// over sets what a call takes over a host pool of some size and says whether
// it is larger than any that was measured. The copy engine finds fewer of the
// addresses of a larger pool where it looked the last ones up.
func (c *copies) over(poolBytes int64) (outside bool) {
	if len(c.pools.x) == 0 {
		return false
	}
	c.call, _ = c.pools.logLinear(math.Max(float64(poolBytes), 1))
	return float64(poolBytes) > c.pools.last()
}

// seconds is 0 of the zero value: engines that copy another way.
func (c *copies) seconds(n, blockBytes int64) float64 {
	t := c.base + float64(n)*c.call
	if c.long > 0 {
		t += float64(n) * c.long * float64(n) / (float64(n) + c.half)
	}
	if c.start > 0 {
		t += c.start * math.Min(1, float64(blockBytes)/c.whole)
	}
	return t
}
