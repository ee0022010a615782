package sim_test

import (
	"flag"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/sim/sched"
	"github.com/sparseserve/sparseserve/sim/score"
)

// scenario is one random run: a small model on a real card's cost models,
// under any system that a configuration can describe.
type scenario struct {
	model     llm.Model
	gpu       string
	spec      sim.Spec
	hbm       int64 // bytes for KV
	seed      uint64
	engine    sim.Engine
	arrivals  []sim.Arrival
	addressed bool
	cutoff    metrics.Cutoff
	good      func(*metrics.Request) bool
	workOf    func() sim.Workload // nil: the arrivals, each at its own time
	priced    bool                // loads are compared with computation by price
}

func (c *scenario) String() string {
	return fmt.Sprintf("%d layers x %d KV heads of %d on %s, %d bytes of HBM, seed %d\n%+v\n%v",
		c.model.Layers, c.model.KVHeads, c.model.HeadDim, c.gpu, c.hbm, c.seed, c.spec, c.arrivals)
}

// tiny returns a model small enough to run every head of in microseconds.
func tiny(layers, kvHeads int) llm.Model {
	return llm.Model{
		Name: "tiny", Layers: layers, Hidden: 64, QHeads: 2 * kvHeads, KVHeads: kvHeads,
		HeadDim: 16, FFN: 128, Vocab: 100, MaxContext: 400, Tokenizer: "llama2", WeightBytesEach: 2,
		KVBytesEach: 2,
	}
}

// draws has the properties of a test draw n cases, also under -short, where a fifth is drawn,
// unless RAPID_CHECKS or a flag says how many.
func draws(t *testing.T, n int) {
	t.Helper()
	checks := flag.Lookup("rapid.checks").Value
	was := checks.String()
	if was != "100" {
		return
	}
	if testing.Short() {
		n *= 5
	}
	if err := checks.Set(strconv.Itoa(n)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { checks.Set(was) })
}

// drawScenario draws a run. HBM and DRAM reach from below what one of the
// requests needs by itself, so that some are rejected, to more than all need.
func drawScenario(t *rapid.T) *scenario {
	pick := func(name string, values ...string) string {
		return rapid.SampledFrom(values).Draw(t, name)
	}
	n := func(name string, low, high int) int { return rapid.IntRange(low, high).Draw(t, name) }
	c := &scenario{
		model: tiny(n("layers", 1, 4), n("kv heads", 1, 4)),
		gpu:   pick("gpu", "a100-40gb", "h200"),
		seed:  uint64(n("seed", 1, 5)),
	}
	c.engine.PlanAhead = rapid.Bool().Draw(t, "plan ahead")
	c.engine.LoadsInTurn = rapid.Bool().Draw(t, "loads in turn")
	if rapid.Bool().Draw(t, "front end") {
		c.engine.Request, c.engine.Reply = des.Time(n("request", 0, 9))*des.Millisecond,
			des.Time(n("reply", 0, 9))*des.Millisecond
	}
	s := &c.spec
	*s = sim.Spec{
		Selection: sim.SelectionSpec{On: rapid.IntRange(0, 2).Draw(t, "sparse") > 0,
			Policy: pick("selection", "arkvale", "arkvale", "quest", "psa", "psa", "streaming",
				"infinigen", "full"), Stop: pick("psa stop", "layer", "head"), Epsilon: pick2(t, "epsilon",
				0.5, 0.9, 0.99), Microbatch: n("microbatch", 1, 5), Pipelined: rapid.Bool().Draw(t,
				"pipelined")},
		BlockTokens: n("block tokens", 1, 8),
		Offload: sim.OffloadSpec{On: n("offload", 0, 3) > 0, Load: pick("load engine", "memcpy",
			"flash"), Save: pick("save engine", "memcpy", "gpu", "flash"), SaveBufferMiB: pick2(t,
			"save buffer", 0, 0.002, 1), Eviction: pick("eviction", kv.LRU, kv.FIFO, kv.CLOCK, kv.SIEVE,
			kv.ByScore), Pool: pick("pool", "unified", "unified", "per-layer"),
			BatchControl: rapid.Bool().Draw(t, "batch control"), WorkingSetSteps: n("window", 1, 12)},
		Utilisation: 0.9,
		Scheduler:   pick("base", sched.BaseNames()...), MaxRequests: n("max requests", 1, 8),
		MaxTokens: n("max tokens", 1, 60), Watermark: pick2(t, "watermark", 0, 0.01, 0.1),
		Prefill: sim.PrefillSpec{Split: pick("prefill", "plain", "chunked", "layer",
			"layer-chunked"), ChunkTokens: n("chunk", 1, 60), OverLength: pick("over length", "truncate",
			"reject"), MaxPromptTokens: n("max prompt", 0, 1) * 100},
		Simulation: sim.SimulationSpec{Heads: pick("heads", "full", "full", "sampled"),
			Groups: n("sample", 1, 4)},
	}
	if s.Offload.Eviction == kv.ByScore && !s.Sparse() {
		s.Offload.Eviction = kv.LRU
	}
	if rapid.Bool().Draw(t, "own inject") {
		s.Prefill.MaxInject = rapid.Int64Range(1, 400).Draw(t, "max inject")
	}
	s.Selection.SinkBlocks, s.Selection.RecentBlocks = n("sinks", 0, 2), n("recent", 1, 2)
	s.Selection.BudgetTokens =
		s.BlockTokens*(s.Selection.SinkBlocks+s.Selection.RecentBlocks+n("budget", 1, 6)) +
			n("budget rest", 0, s.BlockTokens-1)
	if s.Selection.DenseLayers = n("dense layers", 0, 3); s.Selection.DenseLayers > 1 {
		s.Selection.DenseLayers = 0
	}
	if rapid.Bool().Draw(t, "selected prefixes") && s.Offload.On && s.Sparse() {
		s.PrefixCache.Attend = sim.PrefixSelected
	} else if s.Offload.On {
		s.PrefixCache.LoadWeight = float64(n("quarters of a token a load counts", 0, 8)) / 4
	}
	if s.Selection.Policy == "infinigen" {
		s.BlockTokens, s.Selection.Margin = 1, pick2(t, "margin", 0, 2, 5)
	}
	if s.NoPrefixCache() == "" {
		s.PrefixCache.Mode = rapid.SampledFrom(sim.PrefixCaches()).Draw(t, "prefix cache")
		c.drawTiers(t)
	}
	at := des.Time(0)
	largest := 0
	for range n("requests", 1, 10) {
		at += des.Time(n("gap", 0, 20)) * des.Millisecond
		a := sim.Arrival{At: at, Prompt: n("prompt", 1, 60), Output: n("output", 1, 25)}
		if n("long", 0, 9) == 0 {
			a.Prompt *= 8 // beyond the model's maximum when it is over 50
		}
		a.Cached = n("cached", 0, a.Prompt)
		switch {
		case s.CachesPrefixes():
			a.Cached, a.Content = 0, drawContent(t, &a)
		case rapid.Bool().Draw(t, "known"):
			a.Content = holding(0, text(uint64(n("text", 1, 2)), a.Cached),
				text(9+uint64(len(c.arrivals)), a.Prompt-a.Cached))
		}
		c.arrivals = append(c.arrivals, a)
		largest = max(largest, a.Prompt+a.Output)
	}
	s.Selection.Per = pick("select per", sim.PerKVHead, sim.PerQueryHead)
	geo := c.model.Geometry(s.BlockTokens)
	blocks := int64(geo.Blocks(largest)) * int64(geo.Groups())
	scale := func(name string, unit int64) int64 {
		return unit * int64(n(name, 3, 40)) / 10
	}
	c.hbm = scale("hbm", blocks*(geo.BlockBytes+geo.MetaBytes)) +
		geo.BlockBytes*int64(n("hbm more", 0, 40))
	s.DRAMGiB = float64(scale("dram", 2*blocks*geo.BlockBytes)) / (1 << 30)
	return c
}

// drawCrowd draws a run under batch control of requests that come at about the same time and whose
// working sets do not all fit HBM.
func drawCrowd(t *rapid.T) *scenario {
	c := drawScenario(t)
	s := &c.spec
	s.Offload.On, s.Offload.BatchControl, s.DRAMGiB = true, true, 1
	s.MaxRequests, s.MaxTokens, s.Prefill.ChunkTokens = 8, max(s.MaxTokens, 40),
		max(s.Prefill.ChunkTokens, 20)
	if s.Sparse() && rapid.Bool().Draw(t, "selected prefixes of a crowd") {
		s.PrefixCache.Attend, s.PrefixCache.LoadWeight = sim.PrefixSelected, 0
	}
	for i := 0; len(c.arrivals) < 6; i++ {
		c.arrivals = append(c.arrivals, c.arrivals[i])
	}
	largest := 0
	for i := range c.arrivals {
		a := &c.arrivals[i]
		a.At, a.Output = des.Time(i)*des.Millisecond, a.Output+10
		largest = max(largest, min(a.Prompt, c.model.MaxContext-a.Output)+a.Output)
	}
	geo := c.model.Geometry(s.BlockTokens)
	blocks := int64(geo.Blocks(largest)+2) * int64(geo.Groups())
	c.hbm = blocks * (geo.BlockBytes + geo.MetaBytes) * rapid.Int64Range(10, 25).Draw(t, "crowd") / 10
	return c
}

func pick2(t *rapid.T, name string, values ...float64) float64 {
	return rapid.SampledFrom(values).Draw(t, name)
}

// list is a workload of given requests.
type list struct {
	arrivals []sim.Arrival
	next     int
}

func (l *list) Next() (sim.Arrival, bool, error) {
	if l.next == len(l.arrivals) {
		return sim.Arrival{}, false, nil
	}
	l.next++
	return l.arrivals[l.next-1], true, nil
}

// log keeps what a run records.
type log struct {
	requests []metrics.Request
	steps    []metrics.Step
	gaps     []des.Time
}

func (l *log) Request(r *metrics.Request) error {
	l.requests = append(l.requests, *r)
	return nil
}
func (l *log) Gap(d des.Time)             { l.gaps = append(l.gaps, d) }
func (l *log) Step(r *metrics.Step) error { l.steps = append(l.steps, *r); return nil }

// libraries shares recorded selections between runs.
var libraries = struct {
	sync.Mutex
	of map[libraryKey]*dsa.Library
}{of: map[libraryKey]*dsa.Library{}}

type libraryKey struct {
	policy        dsa.Policy
	digest        dsa.Digest
	sinks, window int
}

func library(t fatal, s *sim.Spec) *dsa.Library {
	policy, named, err := s.Policy(2) // as tiny has
	if err != nil {
		t.Fatal(err)
	}
	key := libraryKey{policy, named.Digest, s.Selection.SinkBlocks, s.Selection.RecentBlocks}
	libraries.Lock()
	defer libraries.Unlock()
	if libraries.of[key] == nil {
		_, apart := policy.(dsa.Union)
		libraries.of[key] = dsa.NewLibrary(score.New(score.Default, 1), policy,
			dsa.Setting{Digest: named.Digest, Sinks: s.Selection.SinkBlocks,
				Window: s.Selection.RecentBlocks, Queries: 2,
				Apart: apart}, 2)
	}
	return libraries.of[key]
}

type fatal interface{ Fatal(...any) }
