package cli

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/sparseserve/sparseserve/experiments/run"
)

// taskFlags say which part of an array job's work a command does.
type taskFlags struct {
	Tasks int `placeholder:"N" help:"Make the runs of one of N tasks of a cluster's array job, and print nothing; the same command without it collects them (docs/clusters.md)."`
	Task  int `hidden:"" env:"SLURM_ARRAY_TASK_ID,JOB_COMPLETION_INDEX" help:"This task, of a number from 0 or 1."`
}

// share does the work of one task on the store of a result folder, or at points. The runs stay in
// the store.
func (t *taskFlags) share(app *App, out, points string,
	do func(*run.Store) error) (err error) {
	switch {
	case t.Task < 0 || t.Task > t.Tasks:
		return fmt.Errorf("--task %d --tasks %d: no such task", t.Task, t.Tasks)
	case out+points == "":
		return fmt.Errorf("--tasks %d: all tasks share a folder; name it, as in --out out/job", t.Tasks)
	}
	store, err := run.OpenStore(cmp.Or(points, filepath.Join(out, run.RunsFolder)), app.Version, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	err = do(store)
	printNotes(app.Stderr, store.Notes())
	return err
}
