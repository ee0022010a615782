package hw

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The page has how far imported kernels are from points that no fit has seen, and these are no
// worse than when they were imported.
func TestUnseenPoints(t *testing.T) {
	page, err := os.ReadFile("../docs/cost-model.md")
	if err != nil {
		t.Fatal(err)
	}
	var missing strings.Builder
	for _, name := range KernelNames() {
		k, err := LoadKernels(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range k.Fits {
			if f.Within10 == 0 {
				continue
			}
			row := fmt.Sprintf("| %s | %s | %d | %d | %.1f %% | %.1f %% | %.1f %% |\n", name, f.Model,
				f.Samples, f.HeldOut, 100*f.Within5, 100*f.Within10, 100*f.MedianError)
			if !strings.Contains(string(page), row) {
				missing.WriteString(row)
			}
		}
	}
	if missing.Len() > 0 {
		t.Errorf("docs/cost-model.md lacks\n%s", missing.String())
	}
}
