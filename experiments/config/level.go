package config

import (
	"fmt"
	"math"

	"github.com/sparseserve/sparseserve/hw/cost"
	"github.com/sparseserve/sparseserve/sim/des"
)

// oneLevel gives the systems of configurations one bound on TBT per model. A bound that is a factor
// of a decode step depends on engine, card and GPUs; if it differs, all systems get the strictest
// bound in seconds. Equal bounds stay a factor.
func (in inputs) oneLevel(all ...*Config) error {
	type span struct{ least, most des.Time }
	steps := map[string]span{} // by model
	for _, c := range all {
		if c.SLO.TBTS > 0 || c.SLO.TBTFactor == 0 || len(all)*len(c.Systems) == 1 {
			continue
		}
		for i := range c.Systems {
			t, err := in.decodeStep(c, i)
			if err != nil {
				return err
			}
			r, ok := steps[c.Model]
			if !ok {
				r.least = math.MaxInt64
			}
			steps[c.Model] = span{min(r.least, t), max(r.most, t)}
		}
	}
	for _, c := range all {
		if r := steps[c.Model]; r.least < r.most && c.SLO.TBTS == 0 {
			c.SLO.TBTS = c.SLO.TBTFactor * r.least.Seconds()
		}
	}
	return nil
}

// baseLevel gives variants of a configuration its bound on TBT: the strictest factor of a decode
// step over its systems. A variant with other step times gets the bound in seconds.
func (in inputs) baseLevel(base *Config, variants ...*Config) error {
	least := des.Time(math.MaxInt64)
	for i := range base.Systems {
		t, err := in.decodeStep(base, i)
		if err != nil {
			return err
		}
		least = min(least, t)
	}
	for _, c := range variants {
		for i := range c.Systems {
			t, err := in.decodeStep(c, i)
			if err != nil {
				return err
			}
			if t != least && c.SLO.TBTS == 0 {
				c.SLO.TBTS = c.SLO.TBTFactor * least.Seconds()
			}
		}
	}
	return nil
}

// decodeStep returns the decode step time of a system that the factor multiplies.
func (in inputs) decodeStep(c *Config, system int) (des.Time, error) {
	s := &c.Systems[system]
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
