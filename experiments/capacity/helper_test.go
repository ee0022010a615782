package capacity

import (
	"os"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
)

func mustSweep(t *testing.T, path string, sets ...string) *config.Sweep {
	t.Helper()
	s, err := config.LoadSweep(path, sets, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// written writes the files of an answer into a folder.
func written(dir string, files []run.File, err error) error {
	if err != nil {
		return err
	}
	_, err = run.WriteFiles(dir, files...)
	return err
}
