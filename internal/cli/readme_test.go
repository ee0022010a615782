package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/papers"
)

// blockOf returns a generated block of a document.
func blockOf(t *testing.T, file, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", file))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "<!-- "+name+" -->\n")
	inside, _, ok := strings.Cut(rest, "<!-- /"+name+" -->")
	if !ok {
		t.Fatalf("%s has no lines <!-- %s --> and <!-- /%[2]s -->", file, name)
	}
	return inside
}

// The generated tables are about all that they should be: written anew by sparseserve claims
// --readme FILE, and with --sensitivity.
func TestTablesOfStudies(t *testing.T) {
	const ours = "docs/studies/sparseserve.md"
	for paper, at := range map[string][2]string{"sparseserve": {ours, "claims"},
		"psa":        {"docs/studies/psa.md", "claims psa"},
		"minference": {"docs/studies/minference.md", "claims minference"}} {
		claims, err := papers.Claims(paper)
		if err != nil {
			t.Fatal(err)
		}
		table := blockOf(t, at[0], at[1])
		for _, c := range claims {
			about, _, _ := strings.Cut(c.Text, ": ")
			if !strings.Contains(table, "\n| "+about) {
				t.Errorf("%s has no row of %s, %q", at[0], c.ID, c.Text)
			}
		}
	}
	table := blockOf(t, ours, "sensitivity")
	for _, p := range papers.TunedParameters() {
		if !strings.Contains(table, "\n| `"+p.Name+"` | ") {
			t.Errorf("%s has no row of %s", ours, p.Name)
		}
	}
}

// The README stays short enough to be read.
func TestReadmeIsShort(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(text), "\n"); lines > 180 {
		t.Errorf("README.md has %d lines, more than 180: what is longer belongs in docs/", lines)
	}
}
