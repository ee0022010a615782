package run

import (
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
)

func mustLoad(t *testing.T, path string, sets ...string) *config.Config {
	t.Helper()
	c, err := config.Load(path, sets)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func mustSweep(t *testing.T, path string, sets ...string) *config.Sweep {
	t.Helper()
	s, err := config.LoadSweep(path, sets, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustPoints(t *testing.T, s *config.Sweep) []config.SweepPoint {
	t.Helper()
	points, err := s.Points()
	if err != nil {
		t.Fatal(err)
	}
	return points
}
