package sim_test

import (
	"testing"

	"pgregory.net/rapid"

	"sparseserve/sim/kv"
)

// The scores that eviction goes by are those that selected: in every step each
// candidate that a top-k policy picked scores no less than each that it did not.
func TestBlockScoresAreThoseThatSelect(t *testing.T) {
	steps := 0
	rapid.Check(t, func(t *rapid.T) {
		c := drawScenario(t)
		c.spec.Attention, c.spec.Offload, c.spec.Eviction = "sparse", true, kv.ByScore
		if c.spec.Selection != "arkvale" {
			t.Skip("not top-k")
		}
		c.drive(t, func(o *outcome) error {
			n, err := o.server.CheckScores()
			steps += n
			return err
		})
	})
	if steps < 1000 {
		t.Errorf("only %d selections were looked at", steps)
	}
}
