package cost

import (
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/hw"
)

// Law 12: each part of the cost model pays, by 0.2 points of either kind of step, on two sets of
// live runs, or on the only one that uses it. Parts that do not are named as candidates to go. The
// page has the table of validate ablate, with two columns for each set.
func TestLaw12PartsPayOnTwoSets(t *testing.T) {
	text, err := os.ReadFile("../../docs/cost-model.md")
	if err != nil {
		t.Fatal(err)
	}
	about, table, ok := strings.Cut(string(text), "<!-- ablation -->")
	if !ok {
		t.Fatal("docs/cost-model.md has no table of ablations")
	}
	about = about[strings.LastIndex(about, "candidates to go:"):]
	candidates := map[string]bool{}
	for _, m := range regexp.MustCompile("`([a-z_0-9]+)`").FindAllStringSubmatch(about, -1) {
		candidates[m[1]] = true
	}
	gains := map[string][]float64{}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 8 {
			continue
		}
		var all []float64
		for _, cell := range cells[2:] {
			v, err := strconv.ParseFloat(strings.TrimSpace(cell), 64)
			if err != nil {
				break
			}
			all = append(all, v)
		}
		if len(all) == 6 {
			gains[strings.TrimSpace(cells[1])] = all
		}
	}
	checked := 0
	for _, part := range hw.Parts() {
		if part.Name == "grids" || part.Name == "experts" || part.Name == "selected" {
			continue // kernels of other engines, which no live run has: their own points judge them
		}
		all := gains[part.Name]
		if all == nil {
			t.Errorf("%s has no row", part.Name)
			continue
		}
		uses, pays := 0, 0
		for set := range slices.Chunk(all, 2) {
			if math.Abs(set[0]) > 0.015 || math.Abs(set[1]) > 0.015 {
				uses++
			}
			if max(set[0], set[1]) >= 0.2-1e-9 {
				pays++
			}
		}
		if uses > 0 {
			checked++
		}
		if pays < min(2, uses) && !candidates[part.Name] {
			t.Errorf("law 12: %d sets use %s, which pays on %d, and it is no candidate to go", uses,
				part.Name, pays)
		}
	}
	if checked < 15 {
		t.Errorf("law 12: only %d parts are used", checked)
	}
}
