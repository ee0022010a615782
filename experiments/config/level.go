package config

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/hw/cost"
	"github.com/sparseserve/sparseserve/sim/des"
)

// oneLevel gives the systems of runs one bound on TBT per model. A bound that is a factor of a
// decode step depends on engine, card and GPUs; if it differs, all systems get the strictest bound
// in seconds. Equal bounds stay a factor.
func (in inputs) oneLevel(runs []*Point) error {
	byModel := map[string][]*Point{}
	for _, p := range runs {
		if p.SLO.TBTS == 0 && p.SLO.TBTFactor > 0 {
			byModel[p.Model] = append(byModel[p.Model], p)
		}
	}
	for _, model := range slices.Sorted(maps.Keys(byModel)) {
		least, most, err := in.span(byModel[model])
		if err != nil {
			return err
		}
		if least < most {
			hold(byModel[model], least)
		}
	}
	return nil
}

// span returns the shortest and the longest decode step of runs.
func (in inputs) span(runs []*Point) (least, most des.Time, err error) {
	least = math.MaxInt64
	for _, p := range runs {
		t, err := in.decodeStep(p)
		if err != nil {
			return 0, 0, err
		}
		least, most = min(least, t), max(most, t)
	}
	return least, most, nil
}

// hold gives runs a bound on TBT in seconds, by a decode step, unless they have one.
func hold(runs []*Point, step des.Time) {
	for _, p := range runs {
		if p.SLO.TBTS == 0 {
			p.SLO.TBTS = p.SLO.TBTFactor * step.Seconds()
		}
	}
}

// decodeStep returns the decode step time of a system that the factor multiplies.
func (in inputs) decodeStep(p *Point) (des.Time, error) {
	s := &p.System
	key := fmt.Sprintf("step %s %s %d %d %v %s", p.Model, p.machineKey(), s.TensorParallel,
		s.ExpertParallel, s.Speculation.Tokens > 0, s.KVDtype)
	return once(in, key, func() (des.Time, error) {
		shard, gpu, err := in.hardware(p)
		if err != nil {
			return 0, err
		}
		return cost.ReferenceIteration(gpu, &shard)
	})
}
