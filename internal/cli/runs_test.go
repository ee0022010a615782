package cli

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/files"
)

// runFile reads a file of a run of a result folder.
func runFile(t *testing.T, out, label, name string) string {
	t.Helper()
	index, err := run.ReadIndex(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range index.Runs {
		if r.Label == label {
			text, err := files.ReadResult(filepath.Join(out, filepath.FromSlash(r.Folder), name))
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
	}
	t.Fatalf("%s: no run %s", out, label)
	return ""
}

// finishedRuns counts the runs of a store, packed or not.
func finishedRuns(t *testing.T, store string) int {
	t.Helper()
	archives, err := filepath.Glob(filepath.Join(store, "*"+files.ArchiveEnding))
	if err != nil {
		t.Fatal(err)
	}
	hashes := map[string]bool{}
	for _, path := range archives {
		r, file, err := files.OpenArchive(path)
		if errors.Is(err, fs.ErrNotExist) { // it was packed meanwhile
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.File {
			if hash, _, below := strings.Cut(f.Name, "/"); below {
				hashes[hash] = true
			}
		}
		file.Close()
	}
	return len(hashes)
}
