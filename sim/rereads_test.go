package sim_test

import (
	"testing"

	"github.com/sparseserve/sparseserve/sim"
)

// Two prompts of twelve tokens have eight in common (TestPrefixCacheByHand): while both decode,
// these are read again. The first goes on alone.
func TestDecodesOfOnePrefixRereadItByHand(t *testing.T) {
	shared := text(1, 8)
	c := cachedByHand(100,
		sim.Arrival{Prompt: 12, Output: 4, Content: holding(0, shared, text(2, 4))},
		sim.Arrival{At: 5 * ms, Prompt: 12, Output: 2, Content: holding(0, shared, text(3, 4))})
	_, _, work := c.asks(t)
	var got [][2]int64 // decodes and tokens read again, of both layers
	for _, w := range work {
		got = append(got, [2]int64{int64(w.Decodes), w.RereadTokens})
	}
	expect(t, "decodes, tokens again", got, [][2]int64{{0, 0}, {0, 0}, {0, 0}, {0, 0}, {2, 8}, {2, 8},
		{1, 0}, {1, 0}, {1, 0}, {1, 0}})
}
