package run

import (
	"context"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
)

func mustLoad(t *testing.T, path string, sets ...string) []config.Point {
	t.Helper()
	c, err := config.Load(path, sets)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func mustSweep(t *testing.T, path string, sets ...string) *config.Sweep {
	t.Helper()
	s, err := config.LoadSweep(t.Context(), path, sets)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustPoints(t *testing.T, s *config.Sweep) []config.Point {
	t.Helper()
	points, err := s.Points(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return points
}

// openRuns opens the folder of a configuration's runs.
func openRuns(dir, version string, c []config.Point, replace bool) (*Folder, error) {
	q, err := AskSweep(context.Background(),
		&config.Sweep{Name: "default", Variants: [][]config.Point{c}})
	if err != nil {
		return nil, err
	}
	return OpenFolder(dir, version, q, "", replace)
}

// openSweep opens the folder of a sweep whose runs are kept elsewhere, or in it.
func openSweep(dir, elsewhere string, s *config.Sweep) (*Folder, error) {
	q, err := AskSweep(context.Background(), s)
	if err != nil {
		return nil, err
	}
	return OpenFolder(dir, "test", q, elsewhere, false)
}
