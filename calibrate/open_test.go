package calibrate

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
)

// fakeLibrary builds the library without CUDA that package cuda tests with.
func fakeLibrary(t *testing.T, defines ...string) string {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("no gcc: these tests must run in CI")
		}
		t.Skip("no gcc to build the fake library")
	}
	path := filepath.Join(t.TempDir(), "libsparseserve.so")
	args := append([]string{"-shared", "-fPIC", "-o", path,
		filepath.Join("..", "cuda", "testdata", "fake.c"), "-lpthread"}, defines...)
	if out, err := exec.Command(gcc, args...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	return path
}

// withSMI puts a nvidia-smi before all else that answers with the lines given,
// one a call, the last again and again.
func withSMI(t *testing.T, answers ...string) {
	t.Helper()
	dir := t.TempDir()
	script := "#!/bin/sh\ncd " + dir +
		"\nn=$(($(cat calls 2>/dev/null || echo 0) + 1))\necho $n > calls\nset -- " +
		strings.Join(answers, " ") +
		"\n[ $n -le $# ] || n=$#\neval echo \\$$n\n"
	if err := os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// A library that opens on a machine that cannot be measured: what is missing and what to do.
func TestOpenMachineRefuses(t *testing.T) {
	code := func(c cuda.Code) string { return fmt.Sprintf("-DFAKE_CODE=%d", c) }
	for _, c := range []struct {
		name    string
		defines []string
		busy    []string // answers of nvidia-smi; none: there is none
		want    []string
	}{
		{"no driver", []string{code(cuda.NoDriver)}, nil, []string{"NVIDIA driver", "install one"}},
		{"no GPU", []string{code(cuda.NoDevice)}, nil, []string{"needs a GPU", "nvidia-smi"}},
		{"library of another version", []string{"-DFAKE_VERSION=99"}, nil,
			[]string{"version 99", "make cuda"}},
		{"old library", []string{"-DFAKE_WITHOUT_PSA"}, nil, []string{"ss_psa", "make cuda"}},
		{"little GPU memory", nil, nil, []string{"too little GPU memory"}},
		{"busy", nil, []string{"97"}, []string{"the card is busy", "97 %", "CUDA_VISIBLE_DEVICES"}},
		{"busy no more", nil, []string{"33", "33", "0"}, []string{"too little GPU memory"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			library := fakeLibrary(t, c.defines...)
			if c.busy == nil {
				t.Setenv("PATH", t.TempDir())
			} else {
				withSMI(t, c.busy...)
			}
			_, _, err := OpenMachine(library, Options{Plan: Full})
			for _, w := range c.want {
				if err == nil || !strings.Contains(err.Error(), w) {
					t.Errorf("got %v, want %q", err, w)
				}
			}
		})
	}
}

// Without nvcc 'make calibrate' fails, and names what to install.
func TestMakeWithoutNvcc(t *testing.T) {
	path, err := exec.LookPath("make")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("no make: this test must run in CI")
		}
		t.Skip("no make")
	}
	command := exec.Command(path, "calibrate", "NVCC=nvcc-that-is-not-there",
		"CUDA_BUILD="+filepath.Join(t.TempDir(), "build"))
	command.Dir = ".."
	out, err := command.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "nvidia-cuda-toolkit") {
		t.Errorf("%v\n%s", err, out)
	}
}
