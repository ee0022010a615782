package sim_test

import (
	"hash/fnv"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim"
)

// Law 11, of a faster link. It is strict, to the nanosecond, for as long as the
// device is asked to do the same. It cannot be for a whole trace, not even
// within a step or two for each request: a step that ends earlier may begin the
// next just before an arrival, which then joins a batch later. From there on
// HBM fills up in other steps. Algorithm 1 goes through the candidates in order
// and sets back each that does not fit what is left, but then takes a younger
// and smaller one that does. So a chunked prefill one chunk behind can be set
// back where it would have run, be overtaken, and stand by until a request with
// a large working set has gone: for as long as that one's whole prompt takes.

// Up to the first step in which the two servers ask their devices for different
// work, no step begins or ends later with the faster link, whenever requests
// arrive and saves complete.
func TestLaw11FasterLinkIsNotSlower(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawOffloaded(t)
		slow, fast := c.onTwoLinks(t, false)
		if n := alike(t, c, slow, fast); n == 0 && len(slow.steps) > 0 {
			t.Fatalf("law 11: the first steps differ\n%v", c)
		}
	})
}

// Where no decision can depend on the clock, the batches are the same and no
// request sees a token later: requests come together, to a server with nothing
// left to do, and saves complete as their step ends.
func TestLaw11FasterLinkMakesNobodyWait(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawOffloaded(t)
		c.workOf = nil
		c.together(t)
		if c.spec.Hot() { // whose hits depend on when blocks are saved
			c.spec.PrefixCache.Mode = sim.PrefixOff
		}
		slow, fast := c.onTwoLinks(t, true)
		if n := alike(t, c, slow, fast); n != len(slow.steps) || n != len(fast.steps) {
			t.Fatalf("law 11: %d steps, %d with a faster link, of which the first %d are the same\n%v",
				len(slow.steps), len(fast.steps), n, c)
		}
		for i, a := range slow.requests {
			b := fast.requests[i]
			if b.ID != a.ID || b.Scheduled > a.Scheduled || b.FirstToken > a.FirstToken ||
				b.LastToken > a.LastToken {
				t.Fatalf("law 11: %+v, with a faster link %+v\n%v", a, b, c)
			}
		}
		if a, b := slow.metrics.Summary().TTFT.Mean, fast.metrics.Summary().TTFT.Mean; b > a {
			t.Fatalf("law 11: mean TTFT %v s, with a faster link %v s\n%v", a, b, c)
		}
	})
}

// onTwoLinks serves the scenario, offloading, on its card and on one whose link
// is faster.
func (c *scenario) onTwoLinks(t *rapid.T, timeless bool) (slow, fast *outcome) {
	factor := rapid.Float64Range(1, 8).Draw(t, "factor")
	run := func(gpu *hw.Profile) *outcome {
		o := c.start(t, gpu)
		o.spy.timeless, o.spy.asked = timeless, fnv.New64a()
		o.run(t, c, nil)
		return o
	}
	return run(profile(t, c.gpu)), run(fasterLink(profile(t, c.gpu), factor))
}

// alike returns how many steps both devices were asked for alike, and fails the
// test when one of them is later on the faster link.
func alike(t *rapid.T, c *scenario, slow, fast *outcome) int {
	n := 0
	for ; n < min(len(slow.spy.ended), len(fast.spy.ended)); n++ {
		a, b := &slow.spy.ended[n], &fast.spy.ended[n]
		if a.Asked != b.Asked {
			break
		}
		if b.Start > a.Start || b.Start+b.Timing.Elapsed > a.Start+a.Timing.Elapsed {
			t.Fatalf("law 11: step %d takes %v from %v, with a faster link %v from %v\n%v", n,
				a.Timing.Elapsed, a.Start, b.Timing.Elapsed, b.Start, c)
		}
	}
	return n
}

// fasterLink multiplies the rates of the link and of all that runs over it.
func fasterLink(p *hw.Profile, factor float64) *hw.Profile {
	for _, f := range []*hw.Figure{&p.Link.Nominal, &p.Link.H2D, &p.Link.D2H, &p.Link.DuplexCopy,
		&p.Link.DuplexKernel, &p.Save.GPURate} {
		f.Value *= factor
	}
	for _, f := range []*hw.Figure{&p.Load.Swap.Rate, &p.Load.Swap.RequestRate} {
		f.Value = max(f.Value*factor, min(f.Value, 1e-3)) // the least that a profile may say
	}
	for i := range p.Load.Flash {
		p.Load.Flash[i].Value *= factor
	}
	for i := range p.Save.Scatter {
		p.Save.Scatter[i].Value *= factor
	}
	for _, f := range []*hw.Figure{&p.Load.MemcpyCall, &p.Load.FlashLaunch, &p.Load.FlashFloor,
		&p.Save.MemcpyCall, &p.Save.FlashCall, &p.Save.GPULaunch, &p.Save.GPUFloor} {
		if !math.IsNaN(f.Value) {
			f.Value /= factor
		}
	}
	return p
}
