package calibrate

import (
	"math/rand/v2"
	"testing"
)

// Every block that a batch reads has a slot of its own within the pool.
func TestDecodeBatch(t *testing.T) {
	m, err := shapeModel("llama3-8b")
	must(err)
	const heads = 8
	for _, c := range []struct {
		name  string
		spec  decodeSpec
		reads int // blocks
	}{
		{"contexts", decodeSpec{contexts: []int64{320, 32, 640}}, 31 * heads},
		{"lists", decodeSpec{contexts: equalTo(1, 1024), chosen: []int64{1, 2, 3, 4, 5, 6, 7, 32}}, 60},
	} {
		b := newDecodeBatch(rand.New(rand.NewPCG(1, 2)), m, c.spec)
		seen := map[int64]bool{}
		for u, blocks := range b.lists {
			for _, block := range blocks {
				slot := b.slot(int64(u), block)
				if slot < 0 || slot >= b.slots || seen[slot] {
					t.Fatalf("%s: block %d of unit %d in slot %d of %d, used before: %v", c.name, block, u, slot,
						b.slots, seen[slot])
				}
				seen[slot] = true
				if int64(block) >= c.spec.contexts[u/heads]/blockTokens {
					t.Fatalf("%s: unit %d reads block %d of %d tokens", c.name, u, block, c.spec.contexts[u/heads])
				}
			}
		}
		if len(seen) != c.reads || b.slots != int64(c.reads) {
			t.Errorf("%s: %d blocks in %d slots, want %d", c.name, len(seen), b.slots, c.reads)
		}
	}
}
