package cost

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/hw"
)

var update = flag.Bool("update", false, "write the generated parts of documents anew")

// The page has how far imported kernels are from points that no fit has seen.
func TestUnseenPoints(t *testing.T) {
	table := pivot{row: "kernel", total: "points held out"}
	for _, name := range hw.KernelNames() {
		k, err := hw.LoadKernels(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range k.Fits {
			if f.Within10 > 0 {
				table.add(f.Model, k.MeasuredOn, 100*f.Within10, 100*f.MedianError, f.HeldOut)
			}
		}
	}
	generated(t, "../../docs/cost-model.md", "unseen", "UnseenPoints", table.String())
}

// pivot is a table with a row a kernel and a column a card. A cell has the share of points within
// 10 % and the median error. The last row has the share among the points of all kernels.
type pivot struct {
	row, total string
	rows, cols []string
	cells      map[[2]string]string
	points     map[string]int
	ofCard     map[string]int
	within     map[string]float64
}

func (p *pivot) add(row, col string, within, median float64, points int) {
	if p.cells == nil {
		p.cells, p.points = map[[2]string]string{}, map[string]int{}
		p.ofCard, p.within = map[string]int{}, map[string]float64{}
	}
	if !slices.Contains(p.rows, row) {
		p.rows = append(p.rows, row)
	}
	if !slices.Contains(p.cols, col) {
		p.cols = append(p.cols, col)
	}
	p.cells[[2]string{row, col}] = fmt.Sprintf("%.0f %% (%.1f %%)", within, median)
	p.points[row] += points
	p.ofCard[col] += points
	p.within[col] += within * float64(points)
}

func (p *pivot) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "| %s | %s | %s |\n|-|%s\n", p.row, strings.Join(p.cols, " | "), p.total,
		strings.Repeat("-:|", len(p.cols)+1))
	for _, row := range slices.Sorted(slices.Values(p.rows)) {
		text.WriteString("| " + row)
		for _, col := range p.cols {
			text.WriteString(" | " + cmp.Or(p.cells[[2]string{row, col}], "-"))
		}
		fmt.Fprintf(&text, " | %d |\n", p.points[row])
	}
	all, within := 0, 0.0
	text.WriteString("| all")
	for _, col := range p.cols {
		fmt.Fprintf(&text, " | %.0f %%", p.within[col]/float64(p.ofCard[col]))
		all, within = all+p.ofCard[col], within+p.within[col]
	}
	fmt.Fprintf(&text, " | %.0f %% of %d |\n", within/float64(all), all)
	return text.String()
}

// generated holds the part of a page between <!-- NAME --> and <!-- /NAME --> to a text, or writes
// it where tests run with -update.
func generated(t *testing.T, path, name, test, text string) {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(page), "<!-- "+name+" -->\n")
	is, after, ends := strings.Cut(rest, "<!-- /"+name+" -->\n")
	switch {
	case !begins || !ends:
		t.Fatalf("%s has no part <!-- %s -->", path, name)
	case is == text:
	case *update:
		whole := before + "<!-- " + name + " -->\n" + text + "<!-- /" + name + " -->\n" + after
		if err := os.WriteFile(path, []byte(whole), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s, part %s is stale: go test ./hw/cost -run %s -update writes it anew", path, name,
			test)
	}
}
