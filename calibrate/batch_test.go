package calibrate

import (
	"math/rand/v2"
	"testing"
)

// Every block that a batch reads has a slot of its own within the pool, in either
// layout, also where the pool that pages lie in is smaller than the contexts.
func TestLayOut(t *testing.T) {
	m, err := shapeModel("llama3-8b")
	must(err)
	const heads = 8
	blockBytes := int64(4 * blockTokens * m.HeadDim)
	for _, c := range []struct {
		name  string
		spec  decodeSpec
		reads int   // blocks
		slots int64 // 0: as many
	}{
		{"contexts", decodeSpec{contexts: []int64{320, 32, 640}}, 31 * heads, 0},
		{"lists", decodeSpec{contexts: equalTo(1, 1024), chosen: []int64{1, 2, 3, 4, 5, 6, 7, 32}}, 60, 0},
		{"pages", decodeSpec{contexts: []int64{320, 32, 640}, pool: 100 * heads * blockBytes}, 31 * heads, 100 * heads},
		{"pages, a small pool", decodeSpec{contexts: []int64{320, 32, 640}, pool: 3 * heads * blockBytes}, 31 * heads, 0},
	} {
		b := layOut(rand.New(rand.NewPCG(1, 2)), m, c.spec)
		seen := map[int64]bool{}
		for u, blocks := range b.lists {
			for _, block := range blocks {
				slot := b.slot(int64(u), block)
				if slot < 0 || slot >= b.slots || seen[slot] {
					t.Fatalf("%s: block %d of unit %d in slot %d of %d, taken: %v", c.name, block, u, slot, b.slots, seen[slot])
				}
				seen[slot] = true
				if int64(block) >= c.spec.contexts[u/heads]/blockTokens {
					t.Fatalf("%s: unit %d reads block %d of %d tokens", c.name, u, block, c.spec.contexts[u/heads])
				}
			}
		}
		if c.slots == 0 {
			c.slots = int64(c.reads)
		}
		if len(seen) != c.reads || b.slots != c.slots {
			t.Errorf("%s: %d blocks in %d slots, want %d in %d", c.name, len(seen), b.slots, c.reads, c.slots)
		}
	}
}
