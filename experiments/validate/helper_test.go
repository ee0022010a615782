package validate

import (
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
