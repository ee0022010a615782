package capacity

import (
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
)

func mustSweep(t *testing.T, path string, sets ...string) *config.Sweep {
	t.Helper()
	s, err := config.LoadSweep(path, sets)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
