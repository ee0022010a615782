package capacity

import (
	"os"
	"path/filepath"
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

// pointOf is the first point of a plan's text.
func pointOf(t testing.TB, text string) config.Point {
	t.Helper()
	path := filepath.Join(t.TempDir(), "plan.toml")
	write(t, path, text)
	s, err := config.LoadPlan(path, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	points, err := s.Points()
	if err != nil {
		t.Fatal(err)
	}
	return points[0].Point
}
