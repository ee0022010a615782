package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// bare are calls that read without a limit, from devices too, that replace whatever a path leads
// to, that take the name of a folder for a pattern, or that write formulas. internal/files has
// others in their place.
var bare = []string{"os.ReadFile", "os.Open", "os.Create", "os.WriteFile", "io.ReadAll",
	"toml.DecodeFile", "filepath.Glob", "csv.NewWriter"}

// mayBeBare lists the files that may call these functions: internal/files wraps them, and testkit
// serves tests.
var mayBeBare = []string{"internal/files", "experiments/testkit"}

// TestFilesHaveLimits finds bare calls outside tests.
func TestFilesHaveLimits(t *testing.T) {
	checked := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "out") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") ||
			slices.Contains(mayBeBare, filepath.ToSlash(filepath.Dir(path))) {
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			return err
		}
		checked++
		ast.Inspect(file, func(n ast.Node) bool {
			selector, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			of, ok := selector.X.(*ast.Ident)
			if ok && slices.Contains(bare, of.Name+"."+selector.Sel.Name) {
				t.Errorf("%s: %s.%s: read and write with internal/files, which has limits",
					set.Position(n.Pos()), of.Name, selector.Sel.Name)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if checked < 300 {
		t.Errorf("only %d files looked at; are the folders where they were?", checked)
	}
}
