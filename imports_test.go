package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/sparseserve/sparseserve/"

// tiers is the order in which packages build on one another: a package imports
// only what stands above it. Folders below an entry belong to it.
var tiers = [][]string{
	{"internal/files", "internal/nearest", "internal/stats", "internal/units", "internal/warn"},
	{"internal/tomlfile"},
	{"internal/doc"},
	{"internal/show"},
	{"sim/des"},
	{"sim/prefix"},
	{"sim/memory", "sim/kv", "sim/pattern", "sim/metrics"},
	{"sim/dsa", "sim/sched"},
	{"sim/score"},
	{"sim"},
	{"sim/fleet"},
	{"hw/builtin"},
	{"hw/llm"},
	{"hw", "cuda", "traces"},
	{"hw/cost"},
	{"calibrate"},
	{"experiments"}, // the built-in ones, as data
	{"experiments/config", "experiments/bracket"},
	{"experiments/run"},
	{"experiments/capacity", "experiments/diff", "experiments/patterns"},
	{"experiments/validate", "experiments/papers", "experiments/whatif"},
	{"internal/answers"},
	{"internal/cli"},
	{""}, // main.go
}

// figures draws charts and knows nothing of results: it opens no file but what it writes.
const apart = "figures"

// TestImportsPointOneWay keeps the packages' order. In particular sim knows
// neither hw nor cuda: the same server runs on modelled and on real hardware.
func TestImportsPointOneWay(t *testing.T) {
	checked := 0
	for from, imports := range packageImports(t) {
		for _, to := range imports {
			checked++
			if why := forbidden(from, to); why != "" {
				t.Errorf("%s imports %s: %s", name(from), to, why)
			}
		}
	}
	if checked < 10 {
		t.Errorf("only %d imports looked at; are the folders where they were?", checked)
	}
}

// TestForbidden shows that the law can be broken.
func TestForbidden(t *testing.T) {
	for _, c := range []struct {
		from, to string
		ok       bool
	}{
		{"sim", "sim/sched", true},
		{"sim", "sim/kv", true},
		{"hw", "sim", true},
		{"internal/cli", "figures", true},
		{"internal/answers", "figures", false},
		{"experiments/whatif", "figures", false},
		{"", "internal/cli", true},
		{"sim", "hw", false},
		{"sim", "cuda", false},
		{"sim/kv", "sim", false},
		{"sim/kv", "sim/sched", false},
		{"sim/kv", "sim/des", true},
		{"sim/kv", "sim/dsa", false},
		{"sim/des", "sim/kv", false},
		{"hw", "traces", false},
		{"hw", "hw/cost", false},
		{"figures", "sim", false},
		{"figures", "internal/files", true},
		{"figures", "internal/nearest", false},
		{"experiments", "figures", false},
		{"experiments", "internal/cli", false},
		{"experiments/config", "experiments", true},
		{"experiments/papers", "experiments/capacity", true},
		{"experiments/config", "experiments/run", false},
		{"experiments/run", "experiments/papers", false},
		{"experiments/papers", "experiments/validate", false},
		{"elsewhere", "sim", false},
	} {
		if got := forbidden(c.from, c.to); (got == "") != c.ok {
			t.Errorf("%s imports %s: %q, want allowed %v", name(c.from), c.to, got, c.ok)
		}
	}
}

// TestDrawing holds the drawing of docs/house.md against the order: a tier a line, the lowest last,
// what a tier is for after three spaces or more.
func TestDrawing(t *testing.T) {
	page, err := os.ReadFile("docs/house.md")
	if err != nil {
		t.Fatal(err)
	}
	_, drawing, _ := strings.Cut(string(page), "\n```\n")
	drawing, _, _ = strings.Cut(drawing, "\n```")
	var drawn [][]string
	for line := range strings.SplitSeq(drawing, "\n") {
		names, _, _ := strings.Cut(line, "   ")
		drawn = append([][]string{strings.Fields(names)}, drawn...)
	}
	want := slices.Clone(tiers)
	want[len(want)-1] = []string{"main.go"}
	if !slices.EqualFunc(drawn, want, slices.Equal[[]string]) {
		t.Errorf("docs/house.md draws\n%q, the order is\n%q", drawn, want)
	}
}

// forbidden returns the reason why one package may not import the other; empty: it may.
func forbidden(from, to string) string {
	switch {
	case owner(from) == owner(to) && owner(from) != "":
		return "" // within one folder of the house
	case owner(from) == apart:
		if to == "internal/doc" || to == "internal/stats" || to == "internal/files" {
			return "" // charts, digits, and how a CSV is written
		}
		return "figures draws the charts of documents only"
	case owner(to) == apart:
		if tier(from) < tier("internal/cli") {
			return "only the command line draws"
		}
		return ""
	case tier(from) < 0 || tier(to) < 0:
		return "a folder with no place in the order; give it one here"
	case tier(from) <= tier(to):
		return "imports point from experiments down to sim, never up or sideways"
	}
	return ""
}

// owner is the entry of tiers that a package belongs to: the longest that
// leads its path.
func owner(pkg string) string {
	best := ""
	for _, entry := range append(slices.Concat(tiers...), apart) {
		if (pkg == entry || strings.HasPrefix(pkg, entry+"/")) && len(entry) > len(best) {
			best = entry
		}
	}
	return best
}

// tier is the place of a package in the order, or -1.
func tier(pkg string) int {
	o := owner(pkg)
	if o == "" && pkg != "" {
		return -1
	}
	return slices.IndexFunc(tiers, func(t []string) bool { return slices.Contains(t, o) })
}

func name(pkg string) string {
	if pkg == "" {
		return "main"
	}
	return pkg
}

// packageImports lists, for each folder, the folders of this module that its
// files import, tests apart.
func packageImports(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" ||
			d.Name() == "out") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		from := filepath.ToSlash(filepath.Dir(path))
		if from == "." {
			from = ""
		}
		for _, spec := range file.Imports {
			to, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if to, ok := strings.CutPrefix(to, module); ok && !slices.Contains(out[from], to) {
				out[from] = append(out[from], to)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestWalks holds the walks of docs/house.md: their files exist, and a newcomer opens few of them.
func TestWalks(t *testing.T) {
	page, err := os.ReadFile("docs/house.md")
	if err != nil {
		t.Fatal(err)
	}
	most := map[string]int{"One request": 25, "One load": 5, "One prefix hit": 8,
		"One token of a hot buffer": 6, "One picture": 8, "One trace": 8, "One configuration": 15,
		"One plan": 15}
	steps := regexp.MustCompile(`(?m)^1\. (?:.+\n)+`) // of a walk that is a list
	for section := range strings.SplitSeq(string(page), "\n## ") {
		title, text, _ := strings.Cut(section, "\n")
		if list := steps.FindString(text); list != "" {
			text = list
		}
		var files []string
		for _, name := range regexp.MustCompile("`[a-z][a-z0-9_/]*\\.go`").FindAllString(text, -1) {
			name = strings.Trim(name, "`")
			if n := len(files); !strings.Contains(name, "/") { // beside the one before
				if n == 0 {
					continue
				}
				name = filepath.Join(filepath.Dir(files[n-1]), name)
			}
			if !slices.Contains(files, name) {
				files = append(files, name)
			}
			if _, err := os.Stat(name); err != nil {
				t.Errorf("%s: %v", title, err)
			}
		}
		if n, walk := most[title]; walk && (len(files) == 0 || len(files) > n) {
			t.Errorf("%s: %d files, want at most %d: %q", title, len(files), n, files)
		}
		delete(most, title)
	}
	if len(most) > 0 {
		t.Errorf("docs/house.md has no walks %v", most)
	}
}
