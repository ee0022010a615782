// Package testkit is shared by tests of the experiments: files in a temporary folder, golden files,
// and folder comparison byte by byte.
package testkit

import (
	"flag"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Update makes tests rewrite golden files.
var Update = flag.Bool("update", false, "write the golden files anew")

// testdata is the testdata folder of the package under test, determined before any test changes its
// working folder.
var testdata, _ = filepath.Abs("testdata")

// Write writes text to a file of a temporary folder and makes the folder the working directory, so
// that errors name the file without a path.
func Write(t testing.TB, name, text string) string {
	t.Helper()
	t.Chdir(t.TempDir())
	return Rewrite(t, name, text)
}

// Rewrite writes text to a file and returns its name.
func Rewrite(t testing.TB, name, text string) string {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

// Golden compares text with a file of testdata.
func Golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join(testdata, name)
	if *Update {
		Rewrite(t, path, got)
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("differs from testdata/%s (go test -update writes it anew):\n%s", name, got)
	}
}

// BlockOf returns the lines of a page between <!-- name --> and <!-- /name -->.
func BlockOf(t *testing.T, page, name string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "<!-- "+name+" -->\n")
	inside, _, ok := strings.Cut(rest, "<!-- /"+name+" -->")
	if !ok {
		t.Fatalf("%s has no lines <!-- %s --> and <!-- /%[2]s -->", page, name)
	}
	return inside
}

// Block compares a generated block of a page with want. With -update it writes the block.
func Block(t *testing.T, page, name, want string) {
	t.Helper()
	was := BlockOf(t, page, name)
	if was == want {
		return
	}
	if !*Update {
		t.Errorf("the block %s of %s is old: go test -run %s -update writes it:\n%s", name, page,
			t.Name(), want)
		return
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	start := "<!-- " + name + " -->\n"
	Rewrite(t, page, strings.Replace(string(text), start+was, start+want, 1))
}

// Tree reads all files below a folder.
func Tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		files[filepath.ToSlash(rel)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// SameTree compares two folders byte by byte.
func SameTree(t *testing.T, a, b map[string]string) {
	t.Helper()
	for _, path := range slices.Sorted(maps.Keys(a)) {
		if text, ok := b[path]; !ok || text != a[path] {
			t.Errorf("%s differs", path)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(b)) {
		if _, ok := a[path]; !ok {
			t.Errorf("%s is in the second only", path)
		}
	}
}
