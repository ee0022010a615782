package cli

import (
	"context"
	"errors"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
)

// pointCmd runs one point of a sweep: a task of an array job.
type pointCmd struct {
	Config string `arg:"" name:"CONFIG" help:"Configuration of one run."`
	Points string `required:"" placeholder:"DIR" help:"Where the sweep keeps its runs."`
}

func (p *pointCmd) Run(ctx context.Context, app *App) (err error) {
	point, err := config.LoadPoint(p.Config)
	if err != nil {
		return err
	}
	store, err := run.OpenPointStore(p.Points, app.Program(), false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	_, notes, err := store.Do(ctx, run.Grid{Run: app.Run, Workers: 1}, []config.Point{point})
	printNotes(app.Stderr, notes)
	return err
}
