package config

import (
	"fmt"
	"slices"

	"github.com/sparseserve/sparseserve/sim"
)

// checkCutoff returns what makes a [metrics] table impossible, or nil.
func checkCutoff(c *sim.Cutoff) *KeyError {
	if err := checkRanges(c, "metrics."); err != nil {
		return err
	}
	for _, rule := range []struct{ key, value string }{{"warmup", c.Warmup}, {"drain", c.Drain}} {
		if v := rule.value; !slices.Contains(sim.CutRules, v) {
			key := "metrics." + rule.key
			return &KeyError{Key: key, Value: quote(v), Reason: oneOf(key, v, sim.CutRules)}
		}
	}
	if c.Warmup == sim.CutShare && c.Drain == sim.CutShare && c.WarmupShare+c.DrainShare >= 1 {
		return &KeyError{Key: "metrics.drain_share", Value: Show(c.DrainShare),
			Reason: fmt.Sprintf("leaves nothing with metrics.warmup_share = %g; their sum must be below 1",
				c.WarmupShare)}
	}
	return nil
}
