package sim_test

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/cost"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/memory"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// drawAny draws a run of any memory, any class of model and any kind of arrivals.
func drawAny(t *rapid.T) *scenario {
	kinds := map[string]func(*rapid.T) *scenario{
		"any": drawScenario, "hot": drawHot, "windows": drawWindows, "tiers": drawTiered}
	c := kinds[rapid.SampledFrom([]string{"any", "any", "hot", "windows", "tiers"}).Draw(t,
		"memory")](t)
	return c.vary(t)
}

// drawOffloaded draws a run with KV in DRAM, with hot buffers or without.
func drawOffloaded(t *rapid.T) *scenario {
	if rapid.Bool().Draw(t, "hot buffers") {
		return drawHot(t).vary(t)
	}
	c := drawScenario(t)
	c.spec.Offload.On = true
	return c.vary(t)
}

// vary draws the class of the model, how loads are priced, and sessions of turns.
func (c *scenario) vary(t *rapid.T) *scenario {
	if rapid.Bool().Draw(t, "narrow") {
		if c.model.WeightBytesEach = 1; c.model.KVRank == 0 { // no kernel has FP8 latents this small
			c.model.KVBytesEach = 1
		}
	}
	if rapid.IntRange(0, 2).Draw(t, "experts") == 0 {
		c.model.Mixture = llm.Mixture{Experts: 8, ExpertsPerToken: 2, ExpertFFN: 64}
	}
	if c.priced = rapid.Bool().Draw(t, "priced loads"); c.priced {
		c.spec.PrefixCache.Load = sim.LoadCheaper
	}
	if rapid.IntRange(0, 2).Draw(t, "in sessions") == 0 {
		c.workOf, _ = talkingOf(t, c)
		if c.spec.PrefixCache.Eviction == memory.Belady { // knows the requests to come
			c.spec.PrefixCache.Eviction = memory.LRU
		}
	}
	return c
}

// talkingOf makes sessions of the scenario's requests and names each request after its turn.
func talkingOf(t *rapid.T, c *scenario) (func() sim.Workload, []sim.Arrival) {
	start := talking(t, c)
	_, w := start()
	c.arrivals = nil
	for _, turns := range w.turns {
		c.arrivals = append(c.arrivals, turns...)
	}
	return func() sim.Workload {
		w, _ := start()
		return w
	}, c.arrivals
}

// arrival returns the request of a record.
func (c *scenario) arrival(r *metrics.Request) *sim.Arrival {
	if c.workOf == nil {
		return &c.arrivals[r.ID-1]
	}
	for i := range c.arrivals {
		if c.arrivals[i].Set == r.Set {
			return &c.arrivals[i]
		}
	}
	panic(fmt.Sprintf("no turn %q", r.Set))
}

// drawWindows draws a run of a model with windows in some layers, with vLLM's prefix cache.
func drawWindows(t *rapid.T) *scenario {
	c := drawDense(t)
	c.model.Latent, c.model.Indexer = llm.Latent{}, llm.Indexer{}
	c.model.Layers = max(2, c.model.Layers)
	if c.spec.PrefixCache.Mode = sim.PrefixVLLM; c.spec.NoPrefixCache() != "" {
		c.spec.Prefill.Split = "chunked"
	}
	c.spec.PrefixCache.DRAMGiB, c.spec.PrefixCache.SSDGiB = 0, 0
	window(c, rapid.IntRange(1, 40).Draw(t, "window"))
	for i := range c.arrivals {
		a := &c.arrivals[i]
		a.Cached, a.Content = 0, drawContent(t, a)
	}
	return c
}

// worth is the test of loads that are worth it: by the device's prices, or any.
func (c *scenario) worth(t fatal) func(from, to, ssd int) bool {
	if !c.priced {
		return func(from, to, ssd int) bool { return (from+to+ssd)%2 == 0 }
	}
	drive, err := hw.LoadDrive("pm9a3")
	if err != nil {
		t.Fatal(err)
	}
	prices := cost.NewPrefixPrices(profile(t, c.gpu), &c.model,
		cost.PrefixOptions{Drive: drive, GPUs: 1, Chunk: 1 << 20}, c.spec.Prefill.ChunkTokens)
	token := c.model.Geometry(1).TokenBytes()
	return func(from, to, ssd int) bool {
		l := sim.PrefixLoad{Bytes: int64(to-from) * token, SSD: int64(ssd) * token}
		return prices.Load(l) < prices.Compute(from, to)
	}
}

// together makes the requests of a run come together, to a server with nothing left to do.
func (c *scenario) together(t *rapid.T) {
	at := des.Time(0)
	for i := range c.arrivals {
		if rapid.IntRange(0, 3).Draw(t, "later") == 0 {
			at += 3600 * des.Second
		}
		c.arrivals[i].At = at
	}
}
