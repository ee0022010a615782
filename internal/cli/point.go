package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/sparseserve/sparseserve/experiments/run"
)

// pointCmd is one task of a job that sweep --engine writes.
type pointCmd struct {
	Job    string `arg:"" name:"JOB" help:"Folder of the job."`
	Points string `required:"" placeholder:"DIR" help:"Where the sweep keeps its runs."`
	taskFlags
}

// taskFlags number a task of a job.
type taskFlags struct {
	Tasks int `required:"" placeholder:"N" help:"Tasks of the job."`
	Task  int `required:"" placeholder:"K" env:"SLURM_ARRAY_TASK_ID,JOB_COMPLETION_INDEX" help:"This task, of a number from 0 or 1."`
}

func (t *taskFlags) check() error {
	if t.Tasks < 1 || t.Task < 0 || t.Task > t.Tasks {
		return fmt.Errorf("--task %d --tasks %d: no such task", t.Task, t.Tasks)
	}
	return nil
}

func (p *pointCmd) Run(ctx context.Context, app *App) (err error) {
	if err := p.check(); err != nil {
		return err
	}
	points, err := run.TaskPoints(p.Job, p.Task, p.Tasks)
	if err != nil {
		return err
	}
	store, err := run.OpenPointStore(p.Points, app.Version, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	_, notes, err := store.Do(ctx, run.Grid{Run: app.Run, Workers: 1, Again: func(int) {}}, points)
	printNotes(app.Stderr, notes)
	return err
}
