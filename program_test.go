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

// A change of anything that results are made from makes another program: of a token, a value
// or a cell. One of comments does not.
func TestProgram(t *testing.T) {
	files := fstest.MapFS{
		"go.mod":           {Data: []byte("a")},
		"hw/models/m.toml": {Data: []byte("# of a model\n[m]\nlayers = 2 # all\nname = \"#1\"\n")},
		"sim/server.go": {
			Data: []byte("package sim\n\n// Step is one.\nfunc Step() int { return 1 }\n")},
		"sim/text.go":       {Data: []byte("package sim\n\nconst text = `// one`\n")},
		"hw/engines/e.toml": {Data: []byte("about = \"\"\"\nan engine # 1\n\"\"\"\n")},
		"traces/t.csv.gz":   {Data: []byte("# 1")},
		"cuda/k.cu":         {Data: []byte("#include <a.h>\n// one\nint k = 'a'; /* two */\n")},
	}
	before := program(files)
	if len(before) != 12 || program(files) != before {
		t.Errorf("%q, then %q", before, program(files))
	}
	for _, c := range []struct {
		name, text string
		same       bool
	}{
		{"go.mod", "z", false},
		{"sim/server.go", "// Package sim serves.\n\npackage sim\n\n// Step counts.\nfunc Step() int { " +
			"return /* one */ 1 }\n", true},
		{"sim/server.go", "package sim\n\n// Step is one.\nfunc Step() int { return 2 }\n", false},
		{"sim/server.go", "package sim\n\n// Step is one.\nfunc Next() int { return 1 }\n", false},
		{"hw/models/m.toml", "[m] # another\n\nlayers  =  2\nname = \"#1\" # \"\n", true},
		{"hw/models/m.toml", "[m]\nlayers = 3\nname = \"#1\"\n", false},
		{"hw/models/m.toml", "[m]\nlayers = 2\nname = \"#2\"\n", false},
		{"traces/t.csv.gz", "# 2", false},
		{"cuda/k.cu", "#include <a.h>\nint k = 'a'; // three\n", true},
		{"cuda/k.cu", "#include <b.h>\nint k = 'a';\n", false},
		{"cuda/k.cu", "#include <a.h>\nint k = 'b';\n", false},
		{"hw/engines/e.toml", "about = \"\"\"\nan engine # 2\n\"\"\"\n", false},
		{"sim/text.go", "package sim\n\nconst text = `// two`\n", false},
		{"sim/text.go", "package sim\n\nconst text = `// one` // \"two\n", true},
	} {
		changed := maps.Clone(files)
		changed[c.name] = &fstest.MapFile{Data: []byte(c.text)}
		if same := program(changed) == before; same != c.same {
			t.Errorf("%s as %q: same program: %v", c.name, c.text, same)
		}
	}
	moved := maps.Clone(files)
	moved["sim/other.go"] = moved["sim/server.go"]
	delete(moved, "sim/server.go")
	if program(moved) == before {
		t.Error("a file moved, and the program is the same")
	}
}

// Of every folder that has Go files among the sources these are all but the tests.
func TestSourcesAreWhole(t *testing.T) {
	for _, all := range []fs.FS{sources, liveSources} {
		folders := map[string]bool{}
		err := fs.WalkDir(all, ".", func(name string, d fs.DirEntry, err error) error {
			if strings.HasSuffix(name, ".go") {
				folders[filepath.Dir(name)] = true
			}
			if strings.HasSuffix(name, "_test.go") {
				t.Errorf("%s is among the sources, and a test", name)
			}
			return err
		})
		if err != nil || len(folders) < 5 {
			t.Fatalf("%d folders: %v", len(folders), err)
		}
		for dir := range folders {
			files, _ := filepath.Glob(filepath.Join(dir, "*.go"))
			for _, file := range files {
				_, err := fs.Stat(all, filepath.ToSlash(file))
				if !strings.HasSuffix(file, "_test.go") && err != nil {
					t.Errorf("%s is not among the sources: no pattern of program.go has it", file)
				}
			}
		}
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
		for _, line := range regexp.MustCompile(`(?m)^//go:embed (.+)$`).FindAllStringSubmatch(
			string(text), -1) {
			for _, pattern := range strings.Fields(line[1]) {
				files, err := filepath.Glob(filepath.Join(dir, pattern))
				if err != nil || len(files) == 0 {
					t.Fatalf("%s embeds %s: %d files, %v", file, pattern, len(files), err)
				}
				data = append(data, files...)
			}
		}
	}
	if strings.HasPrefix(dir, "experiments") {
		return nil
	}
	return data
}

// The digest covers every package that a run goes through: experiments/run and all that it
// imports, but for cuda, which live runs alone depend on, and the built-in experiments, which
// a run's configuration has in full.
func TestProgramCoversRuns(t *testing.T) {
	imports := map[string][]string{}
	for from, to := range packageImports(t) {
		imports[strings.TrimPrefix(from, module)] = to
	}
	covered, queue := map[string]bool{}, []string{"experiments/run"}
	for len(queue) > 0 {
		dir := queue[0]
		queue = queue[1:]
		if covered[dir] || dir == "experiments" || dir == "cuda" || strings.HasPrefix(dir, "cuda/") {
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

// Runs of words keep the one space or newline between them; all other space is one or the other.
func TestMeaning(t *testing.T) {
	for text, want := range map[string]string{
		"a b\nc":               "a b\nc",
		"a  b\n\n\tc \n d":     "a b\nc\nd",
		"a // b\nc":            "a\nc",
		"a /* b\n c */ d /e f": "a\nd /e f",
		"a \"b  c\" d\r\n":     "a \"b  c\" d",
		"a\tb `c\n\n  d` e ":   "a b `c\n\n  d` e",
		" a b":                 "a b",
	} {
		if got := string(goSyntax.meaning([]byte("x"), []byte(text))); got != "x"+want {
			t.Errorf("%q: want %q, got %q", text, want, got[1:])
		}
	}
}
