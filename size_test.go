package main

import (
	"debug/elf"
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
	maxTreeBytes = 18_500_000
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

// maxReleaseBytes is the most of a binary as released: fonts of the plots have 4.4 million bytes
// of it, what names the version of the program 2 million.
const maxReleaseBytes = 22_400_000

// TestReleaseIsSmall builds what is released: without -trimpath the paths of sources count, up to
// 40,000 bytes, which differ by where the test runs. A dependency that looks methods up by a name
// that is not constant, as text/template does, has the linker keep every method of every type.
func TestReleaseIsSmall(t *testing.T) {
	if testing.Short() || runtime.GOOS+runtime.GOARCH != "linuxamd64" {
		t.Skip("links a binary for linux on amd64")
	}
	bin := filepath.Join(t.TempDir(), "sparseserve")
	build := exec.Command("go", "build", "-trimpath", "-o", bin,
		"-ldflags", "-s -w -dumpdep -X main.built="+bin, ".")
	// Flags differ each time: the linker names nothing where it has linked the same before.
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	edges := strings.Split(string(out), "\n")
	if len(edges) < 10_000 {
		t.Errorf("the linker names %d uses of symbols", len(edges))
	}
	for _, edge := range edges {
		if strings.Contains(edge, "<ReflectMethod>") {
			t.Fatalf("the linker keeps every method because of %s", edge)
		}
	}
	testNeedsOnlyLibc(t, bin)
	info, err := os.Stat(bin)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > maxReleaseBytes {
		t.Errorf("%d bytes, more than %d; go tool nm -size -sort size says what they are", info.Size(),
			maxReleaseBytes)
	}
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
