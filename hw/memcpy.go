package hw

import (
	"math"

	"github.com/sparseserve/sparseserve/sim/kv"
)

// copies is what one memcpy a block costs in addition to the bytes.
type copies struct {
	base, warmup, warmupBlocks float64

	call  float64 // seconds of one, by over and setLocality
	pools curve   // bytes of the host pool, seconds: call, where given by pool
	used  float64 // bytes of the pool in use
}

func newCopies(base, call Figure, pools []PoolTime) copies {
	c := copies{base: base.optional(), call: call.SI()}
	for _, r := range pools {
		c.pools.add(r.PoolGiB*(1<<30), r.SI())
	}
	return c
}

// newLoadCopies is the copies of loads, of which the first of a batch cost more.
func newLoadCopies(f *Loading) copies {
	c := newCopies(f.MemcpyBase, f.MemcpyCall, f.MemcpyPools)
	c.warmup, c.warmupBlocks = f.MemcpyWarmup.optional(), f.MemcpyWarmupBlocks.optional()
	return c
}

// over sets the time of a call over a host pool of some size and reports whether
// it is larger than any that was measured. The copy engine finds fewer of the
// addresses of a larger pool where it looked the last ones up.
func (c *copies) over(poolBytes int64) (outside bool) {
	if len(c.pools.x) == 0 {
		return false
	}
	c.used = float64(poolBytes)
	c.call = c.callTime(c.used)
	return c.used > c.pools.last()
}

// setLocality sets the mean cost of one memcpy of a layer's loads: the first touch of a page
// costs a TLB miss over the largest pool measured, later ones over their request's KV.
func (c *copies) setLocality(m *kv.Moves) {
	if len(c.pools.x) == 0 {
		return
	}
	if c.call = c.callTime(c.used); m.UniquePages > 0 {
		share := math.Min(1, float64(m.UniquePages)/float64(m.Loads))
		c.call = share*c.callTime(c.pools.last()) + (1-share)*c.callTime(float64(m.RequestKVBytes))
	}
}

// callTime is the time of a call over so much of the host pool.
func (c *copies) callTime(bytes float64) (seconds float64) {
	seconds, _ = c.pools.logLinear(math.Max(bytes, 1))
	return seconds
}

// seconds is 0 of the zero value: engines that copy another way.
func (c *copies) seconds(n int64) float64 {
	t := c.base + float64(n)*c.call
	if c.warmup > 0 {
		t += float64(n) * c.warmup * c.warmupBlocks / (float64(n) + c.warmupBlocks)
	}
	return t
}
