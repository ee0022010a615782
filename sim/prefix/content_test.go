package prefix

import "testing"

// Prompts share the keys of what they have in common, and none after it.
func TestKeysFollowContent(t *testing.T) {
	keys := func(pieces ...Piece) (all []uint64) {
		c := NewChain(pieces)
		for n := 4; ; n += 4 {
			k, ok := c.Key(n)
			if !ok {
				return all
			}
			all = append(all, k)
		}
	}
	one := keys(Piece{7, 10}, Piece{8, 10})
	for _, tc := range []struct {
		name   string
		pieces []Piece
		equal  int // leading keys of four tokens each
	}{
		{"the same", []Piece{{7, 10}, {8, 10}}, 5},
		{"another second piece", []Piece{{7, 10}, {9, 10}}, 2},
		{"a shorter first piece", []Piece{{7, 8}, {8, 12}}, 2},
		{"another first piece", []Piece{{6, 10}, {8, 10}}, 0},
		{"a longer second piece", []Piece{{7, 10}, {8, 14}}, 5},
	} {
		n := 0
		for other := keys(tc.pieces...); n < min(len(one), len(other)) && one[n] == other[n]; n++ {
		}
		if n != tc.equal {
			t.Errorf("%s: %d keys are equal, want %d", tc.name, n, tc.equal)
		}
	}
}
