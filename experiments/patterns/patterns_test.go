package patterns

import (
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/cuda/emulator"
	"github.com/sparseserve/sparseserve/cuda/weights"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim/pattern"
)

func machine(t *testing.T) (*hw.Profile, *llm.Model) {
	t.Helper()
	p, err := hw.Load("a100-80gb", "vllm-0.5", nil)
	if err != nil {
		t.Fatal(err)
	}
	m, err := llm.Load("llama3-8b-1m")
	if err != nil {
		t.Fatal(err)
	}
	return p, &m
}

// TestSearchFindsWhatWasPlanted: the search recovers more than 95 % of planted heads.
func TestSearchFindsWhatWasPlanted(t *testing.T) {
	p, m := machine(t)
	n, tokens := 90, 4096
	if testing.Short() {
		n, tokens = 30, 2048
	}
	space, err := Space(p, m, tokens)
	if err != nil {
		t.Fatal(err)
	}
	kinds := make([]pattern.Kind, n)
	found, err := Search(t.Context(), n, func(i int) (h *Head, err error) {
		h, kinds[i] = Planted(1, i, tokens)
		return h, nil
	}, space)
	if err != nil {
		t.Fatal(err)
	}
	right, table := 0, map[[2]pattern.Kind]int{}
	for i, a := range found {
		table[[2]pattern.Kind{kinds[i], a.Kind}]++
		if kinds[i] == a.Kind {
			right++
		}
	}
	if float64(right) <= 0.95*float64(n) {
		t.Errorf("%d tokens: %d of %d found: %v of %v", tokens, right, n, table, space)
	}
}

// All candidates cost as much as the target, but for what one line or block of 64 more would.
func TestSpaceCostsAlike(t *testing.T) {
	p, m := machine(t)
	for _, tokens := range []int{2048, 8192, 30_000, 131_072} {
		space, err := Space(p, m, tokens)
		if err != nil || len(space) != 6 {
			t.Fatalf("%d tokens: %v, %v", tokens, space, err)
		}
		target := Cost(p, m, space[0], tokens)
		for _, h := range space[1:] {
			more := h
			if h.Kind == pattern.BlockSparse {
				more.A++
			} else {
				more.B++
			}
			if c := Cost(p, m, h, tokens); c > target || Cost(p, m, more, tokens) <= target {
				t.Errorf("%d tokens: %s costs %g, the target %g", tokens, h, c, target)
			}
		}
	}
	if space, _ := Space(p, m, 30_000); space[0] != (pattern.Head{Kind: pattern.AShape, A: 1024,
		B: 4096}) {
		t.Errorf("the target of Table 6 is %s", space[0])
	}
	if _, err := Space(p, m, 100); err == nil {
		t.Error("100 tokens have no blocks to choose from")
	}
}

// randomHead has no structure.
func randomHead(t *rapid.T, tokens, d int) *Head {
	h := &Head{D: d}
	for _, m := range []*[]float32{&h.Q, &h.K, &h.V} {
		for range tokens * d {
			*m = append(*m, rapid.Float32Range(-3, 3).Draw(t, "value"))
		}
	}
	return h
}

// Masks keep causal keys once each, the row's own block or diagonals among them; a mask that keeps
// all keys has no error.
func TestMasks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tokens := rapid.IntRange(64, 300).Draw(t, "tokens")
		h := randomHead(t, tokens, 2)
		p := pattern.Head{Kind: rapid.SampledFrom(PlantedKinds).Draw(t, "pattern"),
			A: rapid.IntRange(1, 400).Draw(t, "a"), B: rapid.IntRange(1, 400).Draw(t, "b")}
		keeps := maskOf(h, p)
		row := rapid.IntRange(0, tokens-1).Draw(t, "row")
		seen := make([]int, tokens)
		keeps(row, func(from, to int) {
			for j := from; j < to; j++ {
				seen[j]++
			}
		})
		for j, n := range seen {
			if n > 1 || j > row && n > 0 {
				t.Fatalf("%s keeps key %d of row %d %d times", p, j, row, n)
			}
		}
		if seen[row] == 0 {
			t.Fatalf("%s does not keep row %d itself", p, row)
		}
		all := pattern.Head{Kind: p.Kind, A: tokens, B: tokens}
		if e := errors(h, []int{row}, []mask{maskOf(h, all)}); e[0] > 1e-9 {
			t.Fatalf("%s has an error of %g", all, e[0])
		}
	})
}

// The error is that of attention over the kept keys alone, computed by another way.
func TestErrorsAgainstNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tokens := rapid.IntRange(64, 200).Draw(t, "tokens")
		h := randomHead(t, tokens, 2)
		p := pattern.Head{Kind: pattern.AShape, A: rapid.IntRange(1, 40).Draw(t, "sink"),
			B: rapid.IntRange(1, 40).Draw(t, "window")}
		row := rapid.IntRange(0, tokens-1).Draw(t, "row")
		output := func(kept func(j int) bool) (y [2]float64) {
			sum := 0.0
			for j := range row + 1 {
				if !kept(j) {
					continue
				}
				w := math.Exp((float64(h.Q[2*row])*float64(h.K[2*j]) + float64(h.Q[2*row+1])*
					float64(h.K[2*j+1])) / math.Sqrt2)
				sum += w
				y[0] += w * float64(h.V[2*j])
				y[1] += w * float64(h.V[2*j+1])
			}
			return [2]float64{y[0] / sum, y[1] / sum}
		}
		dense := output(func(int) bool { return true })
		sparse := output(func(j int) bool { return j < p.A || j > row-p.B })
		norm := math.Hypot(dense[0], dense[1])
		if norm < 1e-3 {
			t.Skip("an output of nothing")
		}
		want := math.Hypot(dense[0]-sparse[0], dense[1]-sparse[1]) / norm
		if got := errors(h, []int{row}, []mask{maskOf(h, p)})[0]; math.Abs(got-want) > 1e-3*(1+want) {
			t.Fatalf("%s, row %d: error %g, naive %g", p, row, got, want)
		}
	})
}

// tiny completes the shape of a model of two layers.
func tiny(m llm.Model) weights.Config {
	m.Name, m.Layers, m.QHeads, m.KVHeads, m.Vocab, m.MaxContext = "tiny", 2, 4, 2, 50, 1024
	m.WeightBytesEach, m.KVBytesEach = 2, 2
	return weights.Config{Model: m}
}

// A model's heads are searched on the CPU, and what is found goes through a file into a mix.
func TestSearchOfAModel(t *testing.T) {
	c := tiny(llm.Model{Hidden: 32, HeadDim: 16, FFN: 32})
	w, err := weights.NewRandom(c, 1)
	if err != nil {
		t.Fatal(err)
	}
	heads, err := OfModel(w, 512, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(heads) != 2 || len(heads[0]) != 4 || heads[1][3].Tokens() != 512 ||
		len(heads[1][3].K) != len(heads[1][3].Q) || len(heads[1][3].V) != 512*16 {
		t.Fatalf("%d layers of %d heads", len(heads), len(heads[0]))
	}
	if !slices.Equal(heads[0][0].K, heads[0][1].K) || slices.Equal(heads[0][0].K, heads[0][2].K) ||
		slices.Equal(heads[0][0].Q, heads[0][1].Q) {
		t.Error("two query heads share a KV head")
	}
	p, m := machine(t)
	space, err := Space(p, m, 512)
	if err != nil {
		t.Fatal(err)
	}
	var table pattern.Table
	for _, layer := range heads {
		found, err := Search(t.Context(), len(layer), func(i int) (*Head, error) {
			return layer[i],
				nil
		}, space)
		if err != nil {
			t.Fatal(err)
		}
		table = append(table, found)
	}
	back, err := pattern.Parse("found.json", table.Encode())
	if err != nil || !reflect.DeepEqual(back, table) {
		t.Fatalf("%v: %v became %v", err, table, back)
	}
	if _, err := back.Mix("found.json", 2, 4); err != nil {
		t.Fatal(err)
	}
}

// A device that computes has the reference's queries, keys and values, but for the rounding to
// fp16, layer by layer.
func TestHeadsOnAMachine(t *testing.T) {
	const tokens = 150
	c := tiny(llm.Model{Hidden: 64, HeadDim: 64, FFN: 48})
	w, err := weights.NewRandom(c, 1)
	if err != nil {
		t.Fatal(err)
	}
	want, err := OfModel(w, tokens, 1)
	if err != nil {
		t.Fatal(err)
	}
	m := emulator.New(emulator.Config{})
	defer m.Close()
	layer := 0
	err = OnMachine(m, w, tokens, 1, func(heads []*Head) error {
		for i, h := range heads {
			far(t, fmt.Sprintf("queries of layer %d, head %d", layer, i), h.Q, want[layer][i].Q)
			far(t, fmt.Sprintf("keys of layer %d, head %d", layer, i), h.K, want[layer][i].K)
			far(t, fmt.Sprintf("values of layer %d, head %d", layer, i), h.V, want[layer][i].V)
		}
		layer++
		return nil
	})
	if err != nil || layer != 2 {
		t.Errorf("%d layers, %v", layer, err)
	}
	if err := OnMachine(m, w, tokens, 1, func([]*Head) error { return io.EOF }); err != io.EOF {
		t.Errorf("%v, want the caller's error", err)
	}
	if d, h := m.Held(); d != 0 || h != 0 {
		t.Errorf("%d and %d bytes are held", d, h)
	}
}

// far wants values within 1 % of the length of what is wanted.
func far(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	var diff, size float64
	for i, x := range want {
		diff += float64(got[i]-x) * float64(got[i]-x)
		size += float64(x) * float64(x)
	}
	if !(math.Sqrt(diff) <= 1e-2*math.Sqrt(size)) {
		t.Errorf("%s: off by %.3g of their length", what, math.Sqrt(diff/size))
	}
}
