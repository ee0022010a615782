package sched

import "testing"

// A decode that verifies drafts takes a token of the budget for each, and blocks for all that may
// be accepted: the third of three finds no tokens, and a prefill only what the decodes left.
func TestDraftsCountInTheBudget(t *testing.T) {
	for _, base := range BaseNames() {
		if ReservesOutputs(base) {
			continue // its steps of decodes have no budget of tokens
		}
		cfg := chunked(base, 7, 100)
		g := newRig(t, cfg)
		for id := 1; id <= 3; id++ {
			g.add(id, 2, 10)
		}
		g.expect(t, "P1:0-2@0-3 P2:0-2@0-3 P3:0-2@0-3")
		g.s.cfg.Drafts = 2
		g.expect(t, "D1 D2")
		g.add(4, 4, 10)
		g.s.cfg.Drafts = 1
		g.expect(t, "D1 D2 D3 P4:0-1@0-3")
	}
}
