package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sparseserve/experiments/papers"
)

// The README's generated tables are about all that they should be: written anew
// by sparseserve claims --readme README.md, and with --sensitivity.
func TestReadmeTables(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := func(name string) string {
		_, rest, _ := strings.Cut(string(text), "<!-- "+name+" -->\n")
		inside, _, ok := strings.Cut(rest, "<!-- /"+name+" -->")
		if !ok {
			t.Fatalf("README.md has no lines <!-- %s --> and <!-- /%[1]s -->", name)
		}
		return inside
	}
	for paper, name := range map[string]string{"sparseserve": "claims", "psa": "claims psa"} {
		claims, err := papers.Claims(paper)
		if err != nil {
			t.Fatal(err)
		}
		table := block(name)
		for _, c := range claims {
			about, _, _ := strings.Cut(c.Text, ": ")
			if !strings.Contains(table, "\n| "+about) {
				t.Errorf("README.md has no row of %s, %q", c.ID, c.Text)
			}
		}
	}
	table := block("sensitivity")
	for _, f := range papers.TunedParameters() {
		if !strings.Contains(table, "\n| `"+f.Name+"` | ") {
			t.Errorf("README.md has no row of %s", f.Name)
		}
	}
	// The text says of one how many numbers it moves.
	_, row, _ := strings.Cut(table, "\n| `host.sparse_layer` | ")
	cells := strings.Split(row, " | ")
	if want := "it moves " + cells[min(1, len(cells)-1)] + " of the numbers"; !strings.Contains(string(text), want) {
		t.Errorf("README.md does not say of host.sparse_layer that %s", want)
	}
}
