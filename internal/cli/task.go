package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/sparseserve/sparseserve/experiments/run"
)

// taskFlag is the number of a job's task.
type taskFlag struct {
	Task int `hidden:"" env:"SLURM_ARRAY_TASK_ID,JOB_COMPLETION_INDEX" help:"This task, of a number from 0 or 1."`
}

// withStore runs a task's work on the store of the job. The runs stay in the store.
func (t *taskFlag) withStore(app *App, dir string, tasks int,
	do func(*run.Store) (notes []string, err error)) (err error) {
	if tasks < 1 || t.Task < 0 || t.Task > tasks {
		return fmt.Errorf("--task %d --tasks %d: no such task", t.Task, tasks)
	}
	store, err := run.OpenStore(dir, app.Version, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	notes, err := do(store)
	printNotes(app.Stderr, notes)
	return err
}

// taskCmd makes a part of the runs of a job that simulate wrote.
type taskCmd struct {
	Job    string `arg:"" name:"JOB" help:"Folder of the job."`
	Points string `required:"" placeholder:"DIR" help:"Where the runs are kept."`
	Tasks  int    `required:"" placeholder:"N" help:"Tasks of the job."`
	taskFlag
}

// Run implements the command.
func (t *taskCmd) Run(ctx context.Context, app *App) error {
	return t.withStore(app, t.Points, t.Tasks, func(store *run.Store) ([]string, error) {
		points, err := run.TaskPoints(t.Job, t.Task, t.Tasks)
		if err != nil {
			return nil, err
		}
		_, notes, err := store.Do(ctx, run.Grid{Run: app.Run, Workers: 1, Again: func(int) {}}, points)
		return notes, err
	})
}
