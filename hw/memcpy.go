package hw

import "math"

// copies is what one memcpy a block costs in addition to the bytes.
type copies struct {
	base, call float64 // seconds of a batch, and of one, by over
	pools      curve   // bytes of the host pool, seconds: call, where given by pool
}

func newCopies(base, call Figure, pools []PoolTime) copies {
	c := copies{base: base.optional(), call: call.SI()}
	for _, r := range pools {
		c.pools.add(r.PoolGiB*(1<<30), r.SI())
	}
	return c
}

// over sets the time of a call over a host pool of some size. The copy engine finds fewer of the
// addresses of a larger pool where it looked the last ones up.
func (c *copies) over(poolBytes int64) {
	if len(c.pools.x) > 0 {
		c.call, _ = c.pools.logLinear(math.Max(float64(poolBytes), 1))
	}
}

// seconds is 0 of the zero value: engines that copy another way.
func (c *copies) seconds(n int64) float64 { return c.base + float64(n)*c.call }
