package main

import (
	"bytes"
	"debug/elf"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// Limits of what is tracked: what a command can make anew does not belong to the tree.
const (
	maxFileBytes = 1 << 20
	maxTreeBytes = 19_200_000
)

// TestTrackedFilesAreSmall holds the tracked files to both limits. Outside a checkout there is
// nothing to look at.
func TestTrackedFilesAreSmall(t *testing.T) {
	out, err := exec.Command("git", "ls-files", "-z").Output()
	if err != nil {
		t.Skip("no git checkout: ", err)
	}
	var tree int64
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		info, err := os.Lstat(name)
		if err != nil {
			continue // removed and not committed yet
		}
		if tree += info.Size(); info.Size() > maxFileBytes {
			t.Errorf("%s has %d bytes, more than %d: compress it, or have a command make it", name,
				info.Size(), maxFileBytes)
		}
	}
	if tree > maxTreeBytes {
		t.Errorf("tracked files have %d bytes, more than %d", tree, maxTreeBytes)
	}
}

// Lines of Go outside tests. Lower them when a part gets smaller: they may only fall.
const (
	// of what shows answers: internal without the decoder of files, figures, experiments/papers
	mostAroundLines = 13_900
	mostLines       = 81_100 // of the house
)

// TestHouseOnlyShrinks holds the number of lines, because what is shorter is read.
func TestHouseOnlyShrinks(t *testing.T) {
	around, all := 0, 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		lines := bytes.Count(text, []byte("\n"))
		all += lines
		for _, part := range []string{"internal", "figures", filepath.Join("experiments", "papers")} {
			decoder := filepath.Join("internal", "tomlfile") // of cards, kernels, models and engines
			if strings.HasPrefix(path, part+string(filepath.Separator)) &&
				!strings.HasPrefix(path, decoder) {
				around += lines
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if around > mostAroundLines || all > mostLines {
		t.Errorf("%d lines around the simulator and %d in all; at most %d and %d", around, all,
			mostAroundLines, mostLines)
	}
	if around < mostAroundLines*9/10 || all < mostLines*9/10 {
		t.Errorf("%d lines around the simulator and %d in all: lower the limits, %d and %d", around, all,
			mostAroundLines, mostLines)
	}
}

// TestReleaseNeedsOnlyLibc builds what is released and holds it against the containers' base.
func TestReleaseNeedsOnlyLibc(t *testing.T) {
	if testing.Short() || runtime.GOOS+runtime.GOARCH != "linuxamd64" {
		t.Skip("links a binary for linux on amd64")
	}
	bin := filepath.Join(t.TempDir(), "sparseserve")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", bin, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	testNeedsOnlyLibc(t, bin)
}

// testNeedsOnlyLibc holds what a release loads at its start against the containers' base, which has
// a C library and no other: purego opens the CUDA library through its dlopen.
func testNeedsOnlyLibc(t *testing.T, bin string) {
	t.Helper()
	program, err := elf.Open(bin)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	libraries, err := program.ImportedLibraries()
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(libraries)
	if want := []string{"libc.so.6", "libdl.so.2", "libpthread.so.0"}; !slices.Equal(libraries, want) {
		t.Errorf("the release loads %v, want %v", libraries, want)
	}
	for _, file := range []string{"Dockerfile", "Dockerfile.release"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "\nFROM gcr.io/distroless/base-debian12\n") {
			t.Errorf("%s starts from no base with a C library", file)
		}
	}
}
