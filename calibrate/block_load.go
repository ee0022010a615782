package calibrate

import (
	"fmt"
	"sync"

	"github.com/sparseserve/sparseserve/hw"
)

// blockLoad is the host's time for each block that a layer loads, and for each that has to give its
// slot up for it.
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

// liveCapacities are what servers that load can hold of what one step selects.
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

// loadingCase is the server of a point, with the capacity that its loads need.
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

// firstCase is the server of first decodes.
func firstCase(p Point) (*liveCase, error) {
	return liveKey{p.Shape, p.At("layers"), p.At("requests"), 0}.server()
}

// liveKey names a server that loads: with the capacity for selected blocks, or, without, of first
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

// loadsOf is what a layer of a server loads; plans are made many times.
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

// mostAddressed are the blocks of a layer of which the host's time for each is fitted where others
// give their slots up: of thousands, which cores share, a block costs a third of what it costs in a
// run. Into free slots it does not matter: 61 ns each of 462 and 49 of 1,851 (an H100's host).
const mostAddressed = 1000

// fit is the host's time for each block that a layer loads, to give it a slot and to address both
// copies, from requests' first decodes, and for each that gives its slot up, from the same servers
// with and without loads. Where no first decode was measured, a load's time is both.
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
