package main

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

// A change of anything that results are made from makes another program; one
// that only tests see does not.
func TestProgram(t *testing.T) {
	files := fstest.MapFS{
		"go.sum":             {Data: []byte("a")},
		"hw/models/m.toml":   {Data: []byte("b")},
		"sim/server.go":      {Data: []byte("c")},
		"sim/server_test.go": {Data: []byte("d")},
		"sim/testdata/x":     {Data: []byte("e")},
	}
	before := program(files)
	if len(before) != 12 || program(files) != before {
		t.Errorf("%q, then %q", before, program(files))
	}
	for name := range files {
		changed := maps.Clone(files)
		changed[name] = &fstest.MapFile{Data: []byte("z")}
		ofTests := strings.Contains(name, "test")
		if same := program(changed) == before; same != ofTests {
			t.Errorf("%s changed: same program: %v", name, same)
		}
	}
	moved := maps.Clone(files)
	moved["sim/other.go"] = moved["sim/server.go"]
	delete(moved, "sim/server.go")
	if program(moved) == before {
		t.Error("a file moved, and the program is the same")
	}
}

// embedded lists the data that sources of a folder embed. That of experiments is
// all in a run's configuration.
func embedded(t *testing.T, dir string, sources []string) []string {
	t.Helper()
	var data []string
	for _, file := range sources {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range regexp.MustCompile(`(?m)^//go:embed (.+)$`).FindAllStringSubmatch(string(text), -1) {
			for _, pattern := range strings.Fields(line[1]) {
				files, err := filepath.Glob(filepath.Join(dir, pattern))
				if err != nil || len(files) == 0 {
					t.Fatalf("%s embeds %s: %d files, %v", file, pattern, len(files), err)
				}
				data = append(data, files...)
			}
		}
	}
	if dir == "experiments" {
		return nil
	}
	return data
}

// The digest covers every package that a run goes through: experiments and all
// that it imports, but for cuda, since a live run is never kept.
func TestProgramCoversRuns(t *testing.T) {
	imports := map[string][]string{}
	for from, to := range packageImports(t) {
		imports[strings.TrimPrefix(from, module)] = to
	}
	covered, queue := map[string]bool{}, []string{"experiments"}
	for len(queue) > 0 {
		dir := queue[0]
		queue = queue[1:]
		if covered[dir] || dir == "cuda" || strings.HasPrefix(dir, "cuda/") {
			continue
		}
		covered[dir] = true
		for _, to := range imports[dir] {
			queue = append(queue, strings.TrimPrefix(to, module))
		}
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", dir, len(files), err)
		}
		for _, file := range append(files, embedded(t, dir, files)...) {
			kept, err := fs.ReadFile(sources, filepath.ToSlash(file))
			text, _ := os.ReadFile(file)
			if !strings.HasSuffix(file, "_test.go") && (err != nil || string(kept) != string(text)) {
				t.Errorf("%s is not among the sources: %v", file, err)
			}
		}
	}
	if len(embedded(t, "hw", []string{"hw/card.go"})) < 4 {
		t.Error("no profiles are looked at")
	}
	if len(covered) < 8 {
		t.Errorf("only %d packages looked at", len(covered))
	}
}
