package cost

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/hw"
)

// errorsOf gathers by how much prices are off, by kernel, in the order in which kernels come.
type errorsOf struct {
	names []string
	off   map[string][]float64
}

func (e *errorsOf) add(kernel string, derived, own float64) {
	if _, ok := e.off[kernel]; !ok {
		e.names = append(e.names, kernel)
	}
	e.off[kernel] = append(e.off[kernel], math.Abs(derived/own-1))
}

// within returns the share of a kernel's points whose error is at most most, in percent.
func (e *errorsOf) within(kernel string, most float64) float64 {
	n := 0
	for _, v := range e.off[kernel] {
		if v <= most {
			n++
		}
	}
	return 100 * float64(n) / float64(len(e.off[kernel]))
}

func (e *errorsOf) median(kernel string) float64 {
	all := slices.Clone(e.off[kernel])
	slices.Sort(all)
	return 100 * all[len(all)/2]
}

// compareKernels prices kernels derived for a card against those imported for it: grids at their
// own points, the others over shapes of models and sizes of batches.
func compareKernels(t *testing.T, derived, own *hw.Profile) *errorsOf {
	t.Helper()
	e := &errorsOf{off: map[string][]float64{}}
	for i := range own.Grids {
		g := &own.Grids[i]
		if d := derived.GridOf(g.Kernel, g.Type); d != nil {
			at := 0
			g.Each(func(sizes hw.Sizes) {
				e.add(g.Kernel+" of "+g.Type, GridSeconds(d, sizes)*1e6, g.Times[at])
				at++
			})
		}
	}
	for _, name := range classModels {
		m := mustModel(t, name)
		a, b := newExperts(derived, m), newExperts(own, m)
		if m.IsMixture() && a.isMeasured() && b.isMeasured() {
			for tokens := 1.0; tokens <= 16384; tokens *= 2 {
				got, _ := a.of(tokens)
				want, _ := b.of(tokens)
				e.add("experts of "+expertType(m), got, want)
			}
		}
	}
	return e
}

// The page has how well deriving works: kernels of one card on another, against those imported for
// the other. Kernels of the same generation and 16 bits are derived within a fifth in most points.
func TestDerivedAgainstImported(t *testing.T) {
	table := pivot{row: "kernel", total: "points"}
	off := map[hw.Derivation]map[bool][]float64{"generation": {}, "generations": {}} // medians, by FP8
	for _, c := range []struct{ kernels, from string }{
		{"h100-vllm", "h200-vllm"}, {"b200-vllm", "h200-vllm"}, {"l40s-vllm", "a100-vllm"},
	} {
		load := func(name string) (*hw.Kernels, *hw.Card) {
			k, err := hw.LoadKernels(name)
			if err != nil {
				t.Fatal(err)
			}
			card, err := hw.LoadCard(k.MeasuredOn)
			if err != nil {
				t.Fatal(err)
			}
			return k, card
		}
		own, card := load(c.kernels)
		_, there := load(c.from)
		on := func(k *hw.Kernels) *hw.Profile {
			p, err := k.On(card)
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		e := compareKernels(t, on(&hw.Kernels{From: c.from}), on(own))
		for _, kernel := range e.names {
			table.add(kernel, card.Name+" from "+there.Name, e.within(kernel, 0.1), e.median(kernel),
				len(e.off[kernel]))
			d := hw.Derivation("generations")
			if c.kernels == "h100-vllm" {
				d = "generation"
			}
			if fp8 := strings.Contains(kernel, "of fp8"); fp8 || strings.HasSuffix(kernel, "of bf16") {
				off[d][fp8] = append(off[d][fp8], e.median(kernel))
			}
			if c.kernels == "h100-vllm" && strings.HasSuffix(kernel, "of bf16") &&
				e.within(kernel, 0.2) < 70 {
				t.Errorf("%s of an H100 from an H200's: only %.1f %% of the points within a fifth", kernel,
					e.within(kernel, 0.2))
			}
		}
	}
	for d, by := range off {
		var most [2]float64
		_, text, _ := strings.Cut(d.Doubt(), ", is ")
		_, err := fmt.Sscanf(text, "up to %f %% in 16 bits and %f %% in FP8", &most[0], &most[1])
		if err != nil {
			t.Fatal(d, err)
		}
		for i, fp8 := range []bool{false, true} {
			if max := slices.Max(by[fp8]); max > most[i] || max < 0.7*most[i] {
				t.Errorf("%s: the largest median is %.0f %%, the text says %g", d, max, most[i])
			}
		}
	}
	generated(t, "../../docs/cost-model.md", "derived", "DerivedAgainstImported", table.String())
}
