package sim_test

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// Policies that decide for whole layers ask all heads, whether or not the cache
// follows their blocks: without a cache, a sample of heads gives the run of all.
func TestASampleOfHeadsDecidesAsAllDo(t *testing.T) {
	decided := 0
	rapid.Check(t, func(t *rapid.T) {
		c := drawScenario(t)
		c.spec.Selection.On, c.spec.Offload.On, c.spec.Selection.Policy = true, false,
			rapid.SampledFrom([]string{"psa", "infinigen"}).Draw(t, "by layer")
		if c.spec.Selection.Stop = "layer"; c.spec.Selection.Policy == "infinigen" {
			c.spec.BlockTokens = 1
		}
		c.spec.Simulation.Heads = "full"
		full := c.drive(t, nil)
		c.spec.Simulation.Heads = "sampled"
		if sampled := c.drive(t, nil); !reflect.DeepEqual(full.log, sampled.log) {
			t.Fatalf("a sample of heads runs otherwise than all\n%v", c)
		}
		decided += len(full.steps)
	})
	if decided < 1000 && !testing.Short() {
		t.Errorf("only %d steps", decided)
	}
}
