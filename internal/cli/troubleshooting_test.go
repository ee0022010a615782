package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var warningKind = regexp.MustCompile(`(?m)^\t[A-Z]\w+ +Kind = "(\w+)"`)

// TestEveryWarningIsExplained looks each kind of warning up on the page, and each row of the page
// among the kinds.
func TestEveryWarningIsExplained(t *testing.T) {
	source, err := os.ReadFile(filepath.Join("..", "warn", "warn.go"))
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "troubleshooting.md"))
	if err != nil {
		t.Fatal(err)
	}
	kinds := warningKind.FindAllStringSubmatch(string(source), -1)
	if rows := strings.Count(string(page), "\n| `"); len(kinds) < 30 || rows != len(kinds) {
		t.Errorf("the page has %d rows for %d kinds of warnings", rows, len(kinds))
	}
	for _, kind := range kinds {
		if strings.Count(string(page), "\n| `"+kind[1]+"` | ") != 1 {
			t.Errorf("docs/troubleshooting.md has no row for %s", kind[1])
		}
	}
}
