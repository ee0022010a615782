package sim_test

import (
	"testing"

	"pgregory.net/rapid"
)

// Laws 1 to 4 after every event and law 8 as every step begins. No request that
// passes the check at its arrival stops the server, however tight the memory.
func TestLaw1Law2Law3Law4Law8AtEveryEvent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawScenario(t)
		c.drive(t, func(o *outcome) error {
			o.spy.begin = o.server.CheckBatch
			return o.server.Check()
		})
	})
}
