package calibrate

import (
	"fmt"
	"github.com/sparseserve/sparseserve/hw"
	"sync"
)

// blockLoad is the host's time for each block that a layer loads.
type blockLoad struct{}

const (
	probeLiveOffload = "live.step_offload"
	probeLiveLoads   = "live.step_loads"
)

func (blockLoad) probes() []Probe {
	return []Probe{
		{Name: probeLiveOffload, serve: serving(loadingCase),
			Means: "the same with selected blocks and offloading",
			Axes:  []string{"layers", "requests"}, shaped: true},
		{Name: probeLiveLoads, serve: serving(loadingCase),
			Means: "the same in less HBM, so that each layer loads blocks, this many " +
				"on average",
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
			if n := loadsOf(p.layers(), requests, capacity); n > 0 {
				p.add(stageBlockLoad, point(probeLiveLoads, shapes[0], p.layers(), requests, n))
			}
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
		if loadsOf(p.At("layers"), p.At("requests"), capacity) == p.At("loads") {
			c.capacity = capacity
			return c, nil
		}
	}
	return nil, fmt.Errorf("no capacity of %v makes a layer load %d blocks", liveCapacities,
		p.At("loads"))
}

// loadsOf is what a layer of a model of some layers loads; plans are made many times.
func loadsOf(layers, requests int64, capacity float64) int64 {
	key := liveKey{layers, requests, capacity}
	if n, ok := liveLoadsKnown.Load(key); ok {
		return n.(int64)
	}
	m, err := shapeModel(shapes[0])
	if err != nil {
		panic(err)
	}
	model := *m
	model.Layers = int(layers)
	c := newLiveCase(&model, false, int(requests))
	c.capacity = capacity
	n, err := c.loads()
	if err != nil {
		n = 0 // one request's prefill may need more than the decodes
	}
	liveLoadsKnown.Store(key, n)
	return n
}

type liveKey struct {
	layers, requests int64
	capacity         float64
}

var liveLoadsKnown sync.Map // liveKey to blocks of a layer

// mostAddressed are the blocks of a layer of which the host's time for each is fitted: of
// thousands, which cores share, a block costs a third of what it costs in a run.
const mostAddressed = 1000

// fit is the host's time for each block that a layer loads, to find it a slot and to address
// both copies, from the same servers with and without loads.
func (blockLoad) fit(s *Samples, p *hw.Profile, from source) []model {
	p.Host.LoadBlock = hw.Figure{}
	loads := s.of(probeLiveLoads).where(func(at observation) bool {
		return at.At("loads") < mostAddressed
	})
	longer := loads.beyond(s.of(probeLiveOffload), byAxis("requests")).where(positive)
	if len(longer) > 0 {
		each := shareOf(longer, func(at observation) float64 {
			return float64(at.At("layers") * at.At("loads"))
		})
		p.Host.LoadBlock = perBlock(each, from,
			"each block that a layer loads: what GPU events see as idle of a decode step of the live loop, "+
				"over the same without loads")
	}
	return nil
}
