package hw

import (
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/sim"
)

// On Hopper 448 tokens take a fifth longer than 512 in Llama3-8B's linears; no other multiple of 64
// is slower than the next by that much. 1088 tokens are by 2 %, as a measurement may be.
func TestLinearsAvoidSlowRows(t *testing.T) {
	p, m := mustProfile(t, "h200"), mustModel(t, "llama3-8b")
	for _, c := range []struct {
		faster     bool
		tokens, of int
	}{
		{true, 1, 1}, {true, 64, 64}, {true, 65, 128}, {true, 384, 384}, {true, 385, 512},
		{true, 448, 512}, {true, 449, 512}, {true, 1088, 1088}, {true, 2049, 2112},
		{false, 385, 448}, {false, 65, 128},
	} {
		q := *p
		q.LinearGrid, q.LinearFaster = 64, c.faster
		if n := LinearRows(&q, m)(c.tokens); n != c.of {
			t.Errorf("%d tokens, faster %v: %d rows, want %d", c.tokens, c.faster, n, c.of)
		}
	}
	q := *p
	q.LinearGrid, q.LinearFaster = 64, true
	c := newCoster(&q, m, &DeviceOptions{})
	a, b := *c.layer(&sim.Work{Tokens: 400}), *c.layer(&sim.Work{Tokens: 512})
	if a.linears != b.linears {
		t.Errorf("linears of 400 tokens take %v s, of the rows that they have %v s", a.linears, b.linears)
	}
}

// More tokens never have fewer rows, whichever card and model; no engine's rows are fewer than its
// tokens, and choosing never makes linears slower.
func TestLinearRowsNeverFall(t *testing.T) {
	for _, gpu := range []string{"h200", "h100-80gb", "a100-80gb"} {
		for _, model := range []string{"llama3-8b", "yi-9b-200k", "qwen2-7b", "llama2-7b"} {
			p, m := *mustProfile(t, gpu), mustModel(t, model)
			p.LinearGrid, p.LinearFaster = 64, true
			rows, l := LinearRows(&p, m), newGEMM(&p, m)
			for n, last := 1, 0; n < 3000; n++ {
				k := rows(n)
				if k < n || k < last {
					t.Fatalf("%s, %s: %d tokens have %d rows, one less %d", gpu, model, n, k, last)
				}
				last = k
				next := p.EngineCosts
				next.LinearFaster = false
				a, _ := l.of(float64(k))
				if b, _ := l.of(float64(next.linearRows(&l, n))); a > b {
					t.Fatalf("%s, %s: %d tokens take %v s in %d rows, %v s in the next multiple", gpu, model, n,
						a, k, b)
				}
			}
		}
	}
}

func TestFasterLinearsNeedAGrid(t *testing.T) {
	e := EngineCosts{LinearFaster: true}
	if err := e.validate(); err == nil || !strings.Contains(err.Error(), "linear_faster") {
		t.Errorf("an engine without a grid to choose from: %v", err)
	}
	e.LinearGrid = 64
	if err := e.validate(); err != nil {
		t.Error(err)
	}
}
