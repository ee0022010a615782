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
	s, err := config.LoadSweep(t.Context(), path, sets)
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

// sweepIn is the sweep of a plan's text, in a folder.
func sweepIn(t testing.TB, dir, text string, sets ...string) *config.Sweep {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "plan.toml")
	write(t, path, text)
	s, err := config.LoadPlan(t.Context(), path, sets)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// pointOf is the first point of a plan's text.
func pointOf(t testing.TB, text string) config.Point {
	t.Helper()
	points, err := sweepIn(t, t.TempDir(), text).Points(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return points[0]
}

// offers lists the offers of a plan, given by its text.
func offers(t testing.TB, text string) *Offers {
	t.Helper()
	f, err := OffersOf(t.Context(), sweepIn(t, t.TempDir(), text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// bought is the answer to a plan by a planner, whose runs are kept in a folder.
func bought(t testing.TB, dir string, s *config.Sweep, p *Planner) *Purchase {
	t.Helper()
	var err error
	if p.Store, err = run.OpenStore(filepath.Join(dir, "points"), "test", true); err != nil {
		t.Fatal(err)
	}
	defer p.Store.Close()
	f, err := OffersOf(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	a, err := p.Purchase(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// purchase plans what the text asks for, in a folder.
func purchase(t testing.TB, dir, text string, workers int, simulate run.Runner) (*Purchase,
	*config.Sweep) {
	t.Helper()
	s := sweepIn(t, dir, text)
	return bought(t, dir, s, &Planner{Run: simulate, Workers: workers}), s
}
