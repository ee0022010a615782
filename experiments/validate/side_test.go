package validate

import (
	"context"
	"path/filepath"
	"testing"

	"golang.org/x/sync/errgroup"
)

// Processes that make live runs in one folder make each once, and a comparison
// afterwards finds them all.
func TestLiveRunsSideBySide(t *testing.T) {
	dir := t.TempDir()
	runs := make([]int, 3)
	taken := make([]int, len(runs))
	var group errgroup.Group
	for i := range runs {
		v := tinyValidation(t, dir, &runs[i], 0)
		v.LiveOnly = true
		group.Go(func() error {
			_, _, err := v.Do(context.Background())
			taken[i] = v.Taken
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	kept, err := filepath.Glob(filepath.Join(dir, liveFolder, "*", manifestFile))
	if err != nil {
		t.Fatal(err)
	}
	made, took := 0, 0
	for i := range runs {
		made += runs[i]
		took += taken[i]
	}
	if points := len(kept); points < 2 || made != points || took > points*(len(runs)-1) {
		t.Errorf("%d runs are kept, %d were made, %d taken by others", points, made, took)
	}
	if hidden, _ := filepath.Glob(filepath.Join(dir, liveFolder, ".*")); len(hidden) > 0 {
		t.Errorf("%v are left", hidden)
	}
	var again int
	v := tinyValidation(t, dir, &again, 0)
	v.Kept = true
	if _, _, err := v.Do(context.Background()); err != nil || again > 0 {
		t.Errorf("%d runs were made again, %v", again, err)
	}
}
