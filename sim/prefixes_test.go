package sim_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/memory"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/sim/prefix"
)

// drawContent draws what a prompt contains: a few texts that others have too, up to its length or
// not as far.
func drawContent(t *rapid.T, a *sim.Arrival) *prefix.Content {
	n := func(name string, low, high int) int { return rapid.IntRange(low, high).Draw(t, name) }
	if n("content known", 0, 5) == 0 {
		return nil
	}
	c := &prefix.Content{Answer: uint64(n("answer", 0, 3))}
	for left := a.Prompt; left > 0 && n("another piece", 0, 4) > 0; {
		p := prefix.Piece{ID: uint64(n("text", 1, 3)), Tokens: n("piece", 1, left)}
		c.Prompt = append(c.Prompt, p)
		left -= p.Tokens
	}
	return c
}

// drawTiers draws what is below HBM: neither, either or both of DRAM and SSD.
func (c *scenario) drawTiers(t *rapid.T) {
	n := func(name string, low, high int) int { return rapid.IntRange(low, high).Draw(t, name) }
	pick := func(name string, values []string) string {
		return rapid.SampledFrom(values).Draw(t, name)
	}
	s := &c.spec
	s.PrefixCache.Chunk = s.BlockTokens * n("chunk blocks", 1, 3)
	s.PrefixCache.DRAMGiB = c.chunkGiB() * float64(max(0, n("chunks of dram", -5, 20)))
	s.PrefixCache.SSDGiB = c.chunkGiB() * float64(max(0, n("chunks of ssd", -5, 40)))
	s.PrefixCache.Eviction = pick("prefix eviction", memory.Evictions())
	s.PrefixCache.Write, s.PrefixCache.WriteHits = pick("prefix write", sim.PrefixWrites()),
		n("write hits", 1, 2)
	s.PrefixCache.LoadTokens = n("least load", 0, 2*s.PrefixCache.Chunk)
	s.PrefixCache.Load = pick("prefix load", sim.PrefixLoads())
	s.PrefixCache.Overlap = pick("overlap", sim.PrefixOverlaps())
}

func (c *scenario) chunkGiB() float64 {
	geo := c.model.Geometry(c.spec.PrefixCache.Chunk)
	return float64(geo.BlockBytes*int64(geo.Groups())) / (1 << 30)
}

func text(id uint64, tokens int) prefix.Piece { return prefix.Piece{ID: id, Tokens: tokens} }

func holding(answer uint64, pieces ...prefix.Piece) *prefix.Content {
	return &prefix.Content{Prompt: pieces, Answer: answer}
}

// cachedByHand is byHand with vLLM V1's scheduler and prefix cache.
func cachedByHand(blocks int64, arrivals ...sim.Arrival) *scenario {
	c := byHand(blocks, arrivals...)
	c.spec.Scheduler, c.spec.PrefixCache.Mode = "vllm-v1", sim.PrefixVLLM
	return c
}

// Two prompts of twelve tokens have eight in common, and the second turn of the first's
// conversation its prompt and answer. Blocks of four.
//
//	  0  request 1, tokens 0 to 8, in 10 + 2 x 8 ms
//	 26  request 1, tokens 8 to 12, in 18; request 2 has its first eight from the blocks of
//	     request 1 that are full already, and computes four in the same step: 26
//	 52  both decode: tokens at 52, 62
//	100  request 3 begins with 1's prompt and its three tokens, of which the last one's KV
//	     was never computed: twelve of 15 are in full blocks, eight are left to compute
func TestPrefixCacheByHand(t *testing.T) {
	shared, own := text(1, 8), text(2, 4)
	c := cachedByHand(100,
		sim.Arrival{Prompt: 12, Output: 3, Content: holding(9, shared, own)},
		sim.Arrival{At: 5 * ms, Prompt: 12, Output: 2, Content: holding(0, shared, text(3, 4))},
		sim.Arrival{At: 100 * ms, Prompt: 20, Output: 1,
			Content: holding(0, shared, own, text(9, 3), text(4, 5))})
	got, o, _ := c.lives(t, nil)
	expect(t, "lives", got, map[int]life{1: {0, 52, 72, 0}, 2: {26, 52, 62, 0}, 3: {100, 126, 126, 0}})
	hits := map[int]int{}
	for _, r := range o.requests {
		hits[r.ID] = r.Hit
	}
	expect(t, "hits", hits, map[int]int{1: 0, 2: 8, 3: 12})
	// Contexts of 1 to 12 tokens, 9 to 12 and 13 to 20, in two layers.
	expect(t, "attended to", o.spy.pairs, 2*(78+42+132))
	expect(t, "stats", *o.metrics.Summary().PrefixCache, metrics.PrefixStats{PromptTokens: 44,
		HitTokens: 20, HitShare: 20. / 44, HBM: metrics.PrefixTier{HitTokens: 20}})
}

// Memory for six blocks: request 2 is preempted by the first's growth, keeps what is not taken
// from it, and begins again after it.
func TestPreemptionKeepsContentByHand(t *testing.T) {
	c := cachedByHand(6,
		sim.Arrival{Prompt: 8, Output: 6, Content: holding(0, text(1, 8))},
		sim.Arrival{Prompt: 8, Output: 6, Content: holding(0, text(2, 8))})
	c.spec.MaxTokens, c.spec.Prefill.ChunkTokens = 16, 16
	_, o, _ := c.lives(t, nil)
	for _, r := range o.requests {
		if r.ID == 2 && r.Preemptions == 0 {
			t.Fatal("request 2 is not preempted")
		}
	}
	// It had twelve tokens in three blocks, of which the first took the last one.
	stats := o.metrics.Summary().PrefixCache
	again := stats.Preempted
	if again.PromptTokens < 9 || again.HitTokens != 8 {
		t.Errorf("the second prefill has %d of %d tokens from the cache, want 8", again.HitTokens,
			again.PromptTokens)
	}
	expect(t, "first prefills", [2]int64{stats.PromptTokens, stats.HitTokens}, [2]int64{16, 0})
}

// Requests emit the same tokens over the same contexts with a prefix cache and without.
func TestLaw13HitsChangeNothingThatIsComputed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c *scenario
		kinds := []string{sim.PrefixVLLM}
		switch rapid.SampledFrom([]string{"HBM", "hot", "windows"}).Draw(t, "memory") {
		case "HBM":
			c, kinds = drawScenario(t), sim.PrefixCaches()[1:]
			c.spec.Offload.On, c.spec.Prefill.Split = false, "chunked"
			c.drawLatents(t)
		case "hot": // with DRAM for all, because metadata is there too with a cache
			c = drawHot(t)
			c.spec.DRAMGiB, c.spec.Offload.HostPoolRatio = 1./16, 0
		case "windows":
			c = drawWindows(t)
			c.hbm *= 8 // a request needs more with the cache, whose blocks hold several layers
		}
		c.vary(t)
		c.workOf = nil
		for i := range c.arrivals {
			a := &c.arrivals[i]
			a.Cached, a.Content = 0, drawContent(t, a)
		}
		c.spec.PrefixCache.Mode = sim.PrefixOff
		without := c.computed(t)
		c.spec.PrefixCache.Mode = rapid.SampledFrom(kinds).Draw(t, "kind")
		with := c.computed(t)
		for id, want := range without {
			tooLarge := with[id].rejected && c.model.IsWindowed()
			if with[id] != want && !tooLarge {
				t.Fatalf("request %d: %+v with the cache, %+v without\n%v", id, with[id], want, c)
			}
		}
	})
}

// served is what came of a request.
type served struct {
	prompt, output int
	rejected       bool
}

// computed runs a scenario and returns what came of its requests, of which every prompt token is
// hit or computed, over all tokens before it: of n tokens that is n (n + 1) / 2 in sum.
func (c *scenario) computed(t *rapid.T) map[int]served {
	o := c.drive(t, func(o *outcome) error { return o.server.Check() })
	got := map[int]served{}
	preempted, prompts, contexts := 0, 0, 0
	for _, r := range o.requests {
		got[r.ID] = served{r.Prompt, r.Output, r.Rejected != ""}
		preempted += r.Preemptions
		if r.Rejected == "" {
			prompts += r.Prompt - r.Hit
			contexts += (r.Prompt*(r.Prompt+1) - r.Hit*(r.Hit+1)) / 2
		}
	}
	if preempted > 0 { // and computed again
		return got
	}
	if want := int64(prompts * c.model.Layers); o.spy.query != want {
		t.Fatalf("%d token-layers are prefilled, prompts less hits have %d\n%v", o.spy.query, want, c)
	}
	if want := int64(contexts * c.model.Layers); o.spy.pairs != want {
		t.Fatalf("prefills attend to %d tokens in sum, their contexts have %d\n%v", o.spy.pairs, want, c)
	}
	return got
}

// With memory for everything and one request at a time, what hits is what a replay of the trace
// finds that writes down all texts that there have been.
func TestLaw13UnboundedHitsAreTheReplays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		windows := rapid.Bool().Draw(t, "windows")
		var c *scenario
		if windows {
			c = drawWindows(t)
		} else {
			c = drawScenario(t)
			c.spec.Offload.On, c.spec.Prefill.Split = false, "chunked"
			c.spec.PrefixCache.Mode = rapid.SampledFrom(sim.PrefixCaches()[1:]).Draw(t, "kind")
			c.drawLatents(t)
		}
		c.spec.Scheduler, c.spec.MaxRequests, c.hbm = "vllm-v1", 1, 1<<30
		c.spec.PrefixCache.DRAMGiB, c.spec.PrefixCache.SSDGiB = 0, 0
		c.spec.Prefill.OverLength = "reject"
		for i := range c.arrivals {
			a := &c.arrivals[i]
			a.Cached, a.Content = 0, drawContent(t, a)
		}
		c.hitsTheReplay(t, c.drive(t, nil))
	})
}

// With little HBM over a tier for everything, or over little DRAM over SSD for everything, they are
// the same, of whole chunks.
func TestLaw13UnboundedTiersHitTheReplays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawTiered(t)
		s := &c.spec
		s.MaxRequests, s.Prefill.OverLength = 1, "reject"
		s.PrefixCache.Load, s.PrefixCache.LoadTokens = sim.LoadAlways, 0
		if s.PrefixCache.Write == sim.WriteSelective { // otherwise prefixes without a hit are lost
			s.PrefixCache.Write = sim.WriteBack
		}
		switch rapid.SampledFrom([]string{"DRAM", "SSD", "both", "both"}).Draw(t, "tiers") {
		case "DRAM":
			s.PrefixCache.DRAMGiB, s.PrefixCache.SSDGiB = 1, 0
		case "SSD":
			s.PrefixCache.DRAMGiB, s.PrefixCache.SSDGiB = 0, 1
		case "both":
			chunks := rapid.IntRange(1, 6).Draw(t, "few chunks")
			s.PrefixCache.DRAMGiB, s.PrefixCache.SSDGiB = float64(chunks)*c.chunkGiB(), 1
		}
		c.hitsTheReplay(t, c.drive(t, func(o *outcome) error { return o.server.Check() }))
	})
}

// drawLatents gives some runs that attend densely a model of latents and an indexer.
func (c *scenario) drawLatents(t *rapid.T) {
	if !c.spec.Sparse() && rapid.Bool().Draw(t, "latents") {
		index(&c.model)
	}
}

// drawTiered draws a run whose prompts come again and again, over tiers below little HBM.
func drawTiered(t *rapid.T) *scenario {
	c := drawScenario(t)
	c.spec.Offload.On, c.spec.Prefill.Split, c.spec.Scheduler = false, "chunked", "vllm-v1"
	c.drawLatents(t)
	c.drawTiers(t)
	c.spec.PrefixCache.Mode = rapid.SampledFrom(sim.PrefixCaches()[1:]).Draw(t, "kind")
	plain := !c.spec.Sparse() && c.model.KVRank == 0
	if plain && c.model.Layers > 1 && rapid.Bool().Draw(t, "windows") {
		window(c, rapid.IntRange(1, 40).Draw(t, "window"))
	}
	c.drawRepeats(t)
	return c
}

// drawRepeats has a few prompts come again and again, long after one another, with HBM for hardly
// more than one: most evicted prefixes are requested again.
func (c *scenario) drawRepeats(t *rapid.T) {
	n := func(name string, low, high int) int { return rapid.IntRange(low, high).Draw(t, name) }
	few, largest := make([]sim.Arrival, n("prompts", 2, 5)), 0
	for i := range few {
		a := &few[i]
		a.Prompt, a.Output = n("prompt", 8, 60), n("output", 1, 9)
		if a.Content = drawContent(t, a); a.Content != nil {
			a.Content.Prompt = append(a.Content.Prompt, text(uint64(4+i), a.Prompt)) // the rest
		}
		largest = max(largest, a.Prompt+a.Output)
	}
	c.arrivals = nil
	for i := range n("repeats", 10, 25) {
		a := few[n("which", 0, len(few)-1)]
		a.At = des.Time(i) * 100 * des.Second // what was written is there
		c.arrivals = append(c.arrivals, a)
	}
	geo := c.model.Geometry(c.spec.BlockTokens)
	blocks := geo.Blocks(largest) + n("more blocks", 1, 4)
	c.hbm = int64(blocks*geo.Groups()) * geo.BlockBytes
}

// With offloading the cache is in DRAM, and a block is found once it is saved.
func TestLaw13UnboundedOffloadedHitsAreTheReplays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawOffloaded(t)
		c.workOf = nil
		s := &c.spec
		s.PrefixCache.Mode, s.PrefixCache.DRAMGiB, s.PrefixCache.SSDGiB = sim.PrefixVLLM, 0, 0
		s.Offload.HostPoolRatio, s.Speculation.Tokens = 0, 0 // drafts leave out a hit's last block
		s.DRAMGiB = 1. / 128                                 // for all that ten requests have
		s.Scheduler, s.MaxRequests, s.Prefill.OverLength = "vllm-v1", 1, "reject"
		for i := range c.arrivals {
			a := &c.arrivals[i]
			a.At += des.Time(i) * 100 * des.Second // what was saved is there
			a.Cached, a.Content = 0, drawContent(t, a)
		}
		c.hitsTheReplay(t, c.drive(t, nil))
	})
}

// hitsTheReplay compares what hits in a run with what is found by a replay of the trace that writes
// down all texts that there have been: in HBM some of their blocks, below it all of their chunks.
func (c *scenario) hitsTheReplay(t *rapid.T, o *outcome) {
	seen := map[string]bool{}
	size, chunk := c.spec.BlockTokens, c.spec.BlockTokens
	if c.spec.PrefixTiers() {
		chunk = c.spec.PrefixCache.Chunk
	}
	c.tiersAddUp(t, o.requests, o.metrics.Summary())
	for _, r := range o.requests {
		if r.Rejected != "" {
			continue
		}
		words := spelled(&c.arrivals[r.ID-1], r.ID)
		known := func(size int) (n int) {
			for n+size < r.Prompt && seen[string(words[:n+size])] {
				n += size
			}
			return n
		}
		hbm := r.Hit - r.HitDRAM - r.HitSSD
		if want := max(hbm, known(chunk)); r.Hit != want || hbm > known(size) {
			t.Fatalf("request %d has %d tokens from the cache, %d of them in HBM, the replay %d of %d\n"+
				"%v", r.ID, r.Hit, hbm, want, known(size), c)
		}
		for n := size; n < r.Prompt+r.Output; n += size { // the last token is not computed
			seen[string(words[:n])] = true
		}
	}
}

// tiersAddUp verifies that no tier's hits are negative, that they add up to the requests' hits, and
// that hits below HBM are loaded, again after preemptions.
func (c *scenario) tiersAddUp(t *rapid.T, requests []metrics.Request, sum metrics.Summary) {
	p := sum.PrefixCache
	if p == nil {
		return
	}
	var want [3]int64
	for _, r := range requests {
		hits := [3]int{r.Hit - r.HitDRAM - r.HitSSD, r.HitDRAM, r.HitSSD}
		for i, n := range hits {
			if want[i] += int64(n); n < 0 {
				t.Fatalf("law 13: request %d hits %v tokens of the tiers\n%v", r.ID, hits, c)
			}
		}
	}
	got := [3]int64{p.HBM.HitTokens, p.DRAM.HitTokens, p.SSD.HitTokens}
	if got != want || got[0]+got[1]+got[2] != p.HitTokens || p.HitTokens > p.PromptTokens {
		t.Fatalf("law 13: tiers have %v of %d hits, their requests %v\n%v", got, p.HitTokens, want, c)
	}
	loaded, token := [2]int64{p.DRAM.LoadedBytes, p.SSD.LoadedBytes}, c.model.Geometry(1).TokenBytes()
	least := [2]int64{got[1] * token, got[2] * token}
	switch geo := c.model.Geometry(c.spec.BlockTokens); {
	case c.spec.Hot(): // with metadata
		blocks := got[1] / int64(c.spec.BlockTokens) * int64(geo.Groups())
		least[0] = blocks * (geo.BlockBytes + geo.MetaBytes)
	case c.spec.Offload.On: // DRAM is no tier below
		least = [2]int64{}
	}
	again := sum.Preempted + sum.Retried
	if loaded[0] < least[0] || loaded[1] < least[1] || again == 0 && loaded != least ||
		p.DRAM.WrittenBytes < 0 || p.SSD.WrittenBytes < 0 {
		t.Fatalf("law 13: %v bytes are loaded, hits have %v, %d began again; %+v\n%v", loaded, least,
			again, p, c)
	}
}

// spelled writes a request's text out, a letter a token, its output included.
func spelled(a *sim.Arrival, id int) (words []rune) {
	add := func(text, tokens int) {
		for i := range tokens {
			words = append(words, rune(text*1000+i+0x10000))
		}
	}
	answer := 0
	if a.Content != nil {
		for _, p := range a.Content.Prompt {
			add(int(p.ID), min(p.Tokens, a.Prompt-len(words)))
		}
		answer = int(a.Content.Answer)
	}
	add(10+2*id, a.Prompt-len(words))
	if answer == 0 {
		answer = 11 + 2*id
	}
	add(answer, a.Output)
	return words
}
