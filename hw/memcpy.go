package hw

import "math"

// copies is the cost of one memcpy per block in addition to the bytes.
type copies struct {
	base, call float64 // seconds per batch and per call, set by over
	pools      curve   // host pool bytes, seconds: call, if it depends on the pool
}

func newCopies(base, call Figure, pools []PoolTime) copies {
	c := copies{base: base.optional(), call: call.SI()}
	for _, r := range pools {
		c.pools.add(r.PoolGiB*(1<<30), r.SI())
	}
	return c
}

// over sets the time of a call for a host pool of poolBytes. In a larger pool the copy engine finds
// fewer addresses in its translation cache.
func (c *copies) over(poolBytes int64) {
	if len(c.pools.x) > 0 {
		c.call, _ = c.pools.logLinear(math.Max(float64(poolBytes), 1))
	}
}

// seconds returns 0 for the zero value: engines that do not use memcpy.
func (c *copies) seconds(n int64) float64 { return c.base + float64(n)*c.call }
