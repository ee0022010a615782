package prefix

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// An index of few and of many equal keys finds the one that entered first.
func TestIndexKeepsTheOrderOfEqualKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := make([]uint64, 60)
		x := NewIndex(1)
		var in []int32
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			place := int32(rapid.IntRange(0, len(keys)-1).Draw(t, "place"))
			if i := slices.Index(in, place); i >= 0 {
				x.Remove(keys, place)
				in = slices.Delete(in, i, i+1)
				keys[place] = 0
			} else {
				keys[place] = uint64(rapid.IntRange(1, 20).Draw(t, "key"))
				x.Insert(keys, place)
				in = append(in, place)
			}
			for key := range uint64(21) {
				want := int32(-1)
				if i := slices.IndexFunc(in, func(p int32) bool { return keys[p] == key && key > 0 }); i >= 0 {
					want = in[i]
				}
				if got := x.Find(keys, key); key > 0 && got != want {
					t.Fatal(fmt.Sprintf("key %d is found at %d, want %d", key, got, want))
				}
			}
		}
	})
}
