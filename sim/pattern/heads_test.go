package pattern

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Heads of a published mix have its counts over the whole model, and in every layer its shares to
// within a head.
func TestHeadsOfAMix(t *testing.T) {
	const layers, heads = 32, 32
	mix, err := Named("llama3-8b-262k", heads)
	if err != nil {
		t.Fatal(err)
	}
	all := map[Head]float64{}
	for layer, of := range mix.Heads(layers, heads) {
		if len(of) != heads {
			t.Fatalf("layer %d has %d heads", layer, len(of))
		}
		for _, g := range mix.Layer(layer) {
			n := 0
			for i, h := range of {
				if h != g.Head {
					continue
				}
				if n++; n > 1 && of[i-1] != h {
					t.Errorf("layer %d: heads of %v do not stand together", layer, h)
				}
			}
			all[g.Head] += float64(n)
			if math.Abs(float64(n)-g.Heads) >= 1.5 {
				t.Errorf("layer %d: %d heads of %v, its share is %.2f", layer, n, g.Head, g.Heads)
			}
		}
	}
	for _, g := range Counts("llama3-8b-262k") {
		if all[g.Head] != g.Heads {
			t.Errorf("%v: %g heads, published are %g", g.Head, all[g.Head], g.Heads)
		}
	}
}

// Heads of a file are the file's, in its order; heads of one pattern are all of it.
func TestHeadsOfAFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		layers, heads := rapid.IntRange(1, 5).Draw(t, "layers"), rapid.IntRange(1, 9).Draw(t, "heads")
		table := make(Table, layers)
		for layer := range table {
			for range heads {
				table[layer] = append(table[layer], Assigned{Head: drawHead(t, 500)})
			}
		}
		mix, err := table.Mix("file", layers, heads)
		if err != nil {
			t.Fatal(err)
		}
		for layer, of := range mix.Heads(layers, heads) {
			for i, h := range of {
				if h != table[layer][i].Head {
					t.Fatalf("layer %d, head %d: %v, the file has %v", layer, i, h, table[layer][i].Head)
				}
			}
		}
		one := drawHead(t, 500)
		if mix, err = Uniform(one, heads); err != nil {
			t.Fatal(err)
		}
		for _, of := range mix.Heads(layers, heads) {
			if len(of) != heads || slices.ContainsFunc(of, func(h Head) bool { return h != one }) {
				t.Fatalf("%v, want %d heads of %v", of, heads, one)
			}
		}
	})
	if (*Mix)(nil).Heads(3, 4) != nil {
		t.Error("dense prefill has patterns")
	}
}
