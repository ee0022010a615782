package hw

import (
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Law 12: each part of the cost model pays, by 0.2 points of either kind of step, on two cards, or
// on the only one whose runs use it. Parts that do not are named as candidates to go. The record is
// the table of validate --ablate: A and C are of one card, B, D and E of one each.
func TestLaw12PartsPayOnTwoCards(t *testing.T) {
	text, err := os.ReadFile("../docs/cost-model.md")
	if err != nil {
		t.Fatal(err)
	}
	about, table, ok := strings.Cut(string(text), "<!-- ablation -->")
	if !ok {
		t.Fatal("docs/cost-model.md has no table of ablations")
	}
	about = about[strings.LastIndex(about, "of what these runs do\nnot do"):]
	candidates := map[string]bool{}
	for _, m := range regexp.MustCompile("`([a-z_0-9]+)`").FindAllStringSubmatch(about, -1) {
		candidates[m[1]] = true
	}
	gains := map[string][]float64{}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 12 {
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
		if len(all) == 10 {
			gains[strings.TrimSpace(cells[1])] = all
		}
	}
	checked := 0
	for _, part := range Parts() {
		if part.Name == "grids" || part.Name == "experts" || part.Name == "selected" {
			continue // kernels of other engines, which no live run has: their own points judge them
		}
		all := gains[part.Name]
		if all == nil {
			t.Errorf("%s has no row", part.Name)
			continue
		}
		uses, pays := 0, 0
		for _, card := range [][]int{{0, 1, 4, 5}, {2, 3}, {6, 7}, {8, 9}} {
			used, most := false, math.Inf(-1)
			for _, column := range card {
				used, most = used || math.Abs(all[column]) > 0.015, max(most, all[column])
			}
			if used {
				uses++
			}
			if most >= 0.2-1e-9 {
				pays++
			}
		}
		if uses > 0 {
			checked++
		}
		if pays < min(2, uses) && !candidates[part.Name] {
			t.Errorf("law 12: runs of %d cards use %s, which pays on %d, and it is no candidate to go", uses,
				part.Name, pays)
		}
	}
	if checked < 15 {
		t.Errorf("law 12: only %d parts are used", checked)
	}
}
