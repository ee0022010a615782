package sim_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// outside are packages through which the model would depend on more than its arguments:
// threads, spin-waits, the wall clock, files and flags.
var outside = []string{"flag", "os", "os/signal", "runtime", "sync/atomic", "syscall",
	"time", "unsafe"}

// exempt are the imports that stay: des.Time prints itself as a time.Duration.
var exempt = map[string][]string{"des/time.go": {"time"}}

// The model runs in virtual time on the caller's thread: sim and the packages below it
// start no goroutine, read no clock and have no assembly.
func TestModelHasNoThreadsAndNoClock(t *testing.T) {
	files := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case filepath.Ext(path) == ".s":
			t.Errorf("%s: assembly", path)
		case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
		default:
			files++
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			for _, why := range breaks(file, exempt[filepath.ToSlash(path)]) {
				t.Errorf("%s: %s", path, why)
			}
		}
		return nil
	})
	if err != nil || files < 40 {
		t.Fatalf("%d files looked at, error %v", files, err)
	}
}

// breaks returns how a file breaks the law.
func breaks(file *ast.File, exempt []string) (why []string) {
	for _, spec := range file.Imports {
		name, _ := strconv.Unquote(spec.Path.Value)
		if slices.Contains(outside, name) && !slices.Contains(exempt, name) {
			why = append(why, fmt.Sprintf("imports %s", name))
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.GoStmt:
			why = append(why, "starts a goroutine")
		case *ast.SelectorExpr:
			if pkg, ok := x.X.(*ast.Ident); ok && pkg.Name == "time" && x.Sel.Name != "Duration" {
				why = append(why, "uses time."+x.Sel.Name)
			} else if x.Sel.Name == "Go" {
				why = append(why, "starts a goroutine by a method Go")
			}
		}
		return true
	})
	return why
}

func TestThreadsAndClocksAreFound(t *testing.T) {
	for source, want := range map[string]int{
		"package x; import \"time\"; var t = time.Now()":                     2,
		"package x; import \"sync/atomic\"; func f() { go f() }":             2,
		"package x; import \"sync\"; func f(w *sync.WaitGroup) { w.Go(f2) }": 1,
		"package x; import \"sync\"; var mu sync.Mutex":                      0,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "", source, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := breaks(file, nil); len(got) != want {
			t.Errorf("%s: %v, want %d", source, got, want)
		}
	}
}
