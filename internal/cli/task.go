package cli

import (
	"errors"
	"fmt"

	"github.com/sparseserve/sparseserve/experiments/run"
)

// taskFlags say which part of a job's work a command does.
type taskFlags struct {
	Tasks int `hidden:"" help:"Tasks of the job that this is a task of."`
	Task  int `hidden:"" env:"SLURM_ARRAY_TASK_ID,JOB_COMPLETION_INDEX" help:"This task, of a number from 0 or 1."`
}

// withStore runs a task's work on the store of the job. The runs stay in the store.
func (t *taskFlags) withStore(app *App, dir string,
	do func(*run.Store) (notes []string, err error)) (err error) {
	if t.Task < 0 || t.Task > t.Tasks {
		return fmt.Errorf("--task %d --tasks %d: no such task", t.Task, t.Tasks)
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
