package config

import (
	"fmt"
	"math"

	"github.com/sparseserve/sparseserve/hw/cost"
	"github.com/sparseserve/sparseserve/sim/des"
)

// oneLevel gives the systems of variants one bound on TBT per model. A bound that is a factor of a
// decode step depends on engine, card and GPUs; if it differs, all systems get the strictest bound
// in seconds. Equal bounds stay a factor.
func (in inputs) oneLevel(variants [][]Point) error {
	type span struct{ least, most des.Time }
	steps := map[string]span{} // by model
	for _, runs := range variants {
		for i := range runs {
			p := &runs[i]
			one := len(variants) == 1 && p.System.Name == runs[0].System.Name
			if one && runs[len(runs)-1].System.Name == p.System.Name || p.SLO.TBTS > 0 ||
				p.SLO.TBTFactor == 0 {
				continue
			}
			t, err := in.decodeStep(p)
			if err != nil {
				return err
			}
			r, ok := steps[p.Model]
			if !ok {
				r.least = math.MaxInt64
			}
			steps[p.Model] = span{min(r.least, t), max(r.most, t)}
		}
	}
	for _, runs := range variants {
		for i := range runs {
			p := &runs[i]
			if r := steps[p.Model]; r.least < r.most && p.SLO.TBTS == 0 {
				p.SLO.TBTS = p.SLO.TBTFactor * r.least.Seconds()
			}
		}
	}
	return nil
}

// strictest returns the shortest decode step of runs.
func (in inputs) strictest(runs []Point) (des.Time, error) {
	least := des.Time(math.MaxInt64)
	for i := range runs {
		t, err := in.decodeStep(&runs[i])
		if err != nil {
			return 0, err
		}
		least = min(least, t)
	}
	return least, nil
}

// heldTo gives runs the bound on TBT of the configuration that they vary, by its decode step. If a
// system has another step, all of them get the bound in seconds.
func (in inputs) heldTo(least des.Time, runs []Point) error {
	same := true
	for i := range runs {
		t, err := in.decodeStep(&runs[i])
		if err != nil {
			return err
		}
		same = same && t == least
	}
	for i := range runs {
		if s := &runs[i].SLO; !same && s.TBTS == 0 {
			s.TBTS = s.TBTFactor * least.Seconds()
		}
	}
	return nil
}

// decodeStep returns the decode step time of a system that the factor multiplies.
func (in inputs) decodeStep(c *Point) (des.Time, error) {
	s := &c.System
	key := fmt.Sprintf("step %s\n%s\n%s\n%v\n%d %d %v %s", c.Model, c.GPU, s.Engine, c.Card,
		s.TensorParallel, s.ExpertParallel, s.Speculation.Tokens > 0, s.KVDtype)
	return once(in, key, func() (des.Time, error) {
		model, err := in.model(c.Model)
		if err != nil {
			return 0, err
		}
		if model, err = shardOf(model, s); err != nil {
			return 0, err
		}
		machine, err := in.machine(c.GPU, s.Engine, c.Card)
		if err != nil {
			return 0, err
		}
		return cost.ReferenceIteration(machine, &model)
	})
}
