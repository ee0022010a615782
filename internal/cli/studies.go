package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/sparseserve/sparseserve/experiments/papers"
	"github.com/sparseserve/sparseserve/experiments/run"
)

// paperFolder is where the paper's figures and their results go.
const paperFolder = "out/paper"

// runStudies runs experiments of the paper, with a bar of runs on a terminal. Runs
// are kept below out, those of each version of the model apart.
func runStudies(ctx context.Context, app *App, out string, studies papers.Studies,
	names ...string) (err error) {
	store, err := run.OpenPointStore(filepath.Join(out, "points", app.Version), app.Version, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	bar := newProgress(app.Stderr, "runs")
	studies.Store, studies.Run, studies.Planned, studies.Finished = store, app.Run, bar.planned,
		bar.finished
	notes, err := studies.Do(ctx, names...)
	bar.close()
	printNotes(app.Stderr, notes)
	if cause := ctx.Err(); cause != nil && errors.Is(err, cause) {
		return fmt.Errorf("%w; finished runs are kept: the same command goes on", errInterrupted)
	}
	return err
}
