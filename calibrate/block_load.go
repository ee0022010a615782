package calibrate

import (
	"fmt"
	"sync"

	"github.com/sparseserve/sparseserve/hw"
)

// blockLoad is the host's time for each block that a layer loads, and for each block that is
// evicted for it.
type blockLoad struct{}

const (
	probeLiveOffload = "live.step_offload"
	probeLiveLoads   = "live.step_loads"
	probeLiveFirst   = "live.first_decode"
)

func (blockLoad) probes() []Probe {
	return []Probe{
		{Name: probeLiveOffload, serve: serving(loadingCase),
			Means: "the same with selected blocks and offloading",
			Axes:  []string{"layers", "requests"}, shaped: true},
		{Name: probeLiveLoads, serve: serving(loadingCase),
			Means: "the same in less HBM, so that each layer loads blocks, this many " +
				"on average, whose slots other blocks give up",
			Axes: []string{"layers", "requests", "loads"}, shaped: true},
		{Name: probeLiveFirst, serve: serving(firstCase),
			Means: "by how much a request's first decode after a layer-segmented prefill is longer than " +
				"those after it, of what GPU events do not see: each layer loads this many blocks more, " +
				"into free slots",
			Axes: []string{"layers", "requests", "loads"}, shaped: true},
	}
}

// liveCapacities are the cache capacities of servers with loads, relative to the selection of one
// step.
var liveCapacities = []float64{1.5, 3.5}

func (blockLoad) points(p *planner) {
	for _, requests := range pick(p, []int64{4, 8}, []int64{4}) {
		// the same without loads
		p.add(stageBlockLoad, point(probeLiveOffload, shapes[0], p.layers(), requests))
		for _, capacity := range liveCapacities {
			key := liveKey{shapes[0], p.layers(), requests, capacity}
			if n := loadsOf(key); n > 0 {
				p.add(stageBlockLoad, point(probeLiveLoads, shapes[0], p.layers(), requests, n))
			}
		}
	}
	for _, shape := range pick(p, shapes, shapes[:1]) {
		if n := loadsOf(liveKey{shape, p.layers(), 1, 0}); n > 0 {
			p.add(stageBlockLoad, point(probeLiveFirst, shape, p.layers(), 1, n))
		}
	}
}

// loadingCase returns the server of a point, with the capacity that yields its loads.
func loadingCase(p Point) (*liveCase, error) {
	c, err := liveCaseOf(p, false)
	if err != nil || p.Probe == probeLiveOffload {
		return c, err
	}
	for _, capacity := range liveCapacities {
		if loadsOf(liveKey{p.Shape, p.At("layers"), p.At("requests"), capacity}) == p.At("loads") {
			c.capacity = capacity
			return c, nil
		}
	}
	return nil, fmt.Errorf("no capacity of %v makes a layer load %d blocks", liveCapacities,
		p.At("loads"))
}

// firstCase returns the server of first decodes.
func firstCase(p Point) (*liveCase, error) {
	return liveKey{p.Shape, p.At("layers"), p.At("requests"), 0}.server()
}

// liveKey identifies a server with loads: by its capacity for selected blocks, or, with 0, of first
// decodes.
type liveKey struct {
	shape            string
	layers, requests int64
	capacity         float64
}

func (k liveKey) server() (*liveCase, error) {
	m, err := shapeModel(k.shape)
	if err != nil {
		return nil, err
	}
	model := *m
	model.Layers = int(k.layers)
	c := newLiveCase(&model, false, int(k.requests))
	if c.capacity = k.capacity; c.capacity == 0 {
		c.first, c.steps = true, firstRun
	}
	return c, nil
}

var liveLoadsKnown sync.Map // liveKey to blocks of a layer

// loadsOf returns the loads of a server's layer. It caches them, because plans are made many times.
func loadsOf(key liveKey) int64 {
	if n, ok := liveLoadsKnown.Load(key); ok {
		return n.(int64)
	}
	c, err := key.server()
	if err != nil {
		panic(err)
	}
	n, err := c.loads()
	if err != nil {
		n = 0 // one request's prefill may need more than the decodes
	}
	liveLoadsKnown.Store(key, n)
	return n
}

// mostAddressed is the maximum number of blocks per layer for the fit of the eviction time. With
// thousands of blocks, several cores share the work and a block costs a third of its cost in a run.
// For loads into free slots the number does not matter.
const mostAddressed = 1000

// fit finds the host's time per loaded block, for its slot and its two addresses, from requests'
// first decodes, and the time per evicted block, from the same servers with and without loads.
// Without first decodes, a load's time covers both.
func (blockLoad) fit(s *Samples, p *hw.Profile, from source) []model {
	p.Host.LoadBlock, p.Host.EvictBlock = hw.Figure{}, hw.Figure{}
	blocks := func(at observation) float64 { return float64(at.At("layers") * at.At("loads")) }
	loads := s.of(probeLiveLoads).where(func(at observation) bool {
		return at.At("loads") < mostAddressed
	})
	longer := loads.beyond(s.of(probeLiveOffload), byAxis("requests")).where(positive)
	firsts := s.of(probeLiveFirst)
	if len(firsts) == 0 {
		if len(longer) > 0 {
			p.Host.LoadBlock = perBlock(shareOf(longer, blocks), from, "each block that a layer loads: "+
				"what GPU events see as idle of a decode step of the live loop, over the same without loads")
		}
		return nil
	}
	free := shareOf(firsts, blocks)
	p.Host.LoadBlock = perBlock(free, from, "each block that a layer loads into a free slot: what "+
		"GPU events see as idle of a request's first decode in the live loop, over those after it")
	if len(longer) > 0 {
		p.Host.EvictBlock = perBlock(max(0, shareOf(longer, blocks)-free), from,
			"each block that gives its slot up: what GPU events see as idle of a decode step of the live "+
				"loop, over the same without loads, less the time of loads into free slots")
	}
	return nil
}
