package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/sparseserve/sparseserve/experiments"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/answers"
	"github.com/sparseserve/sparseserve/internal/files"
)

// jobFlags make a cluster run the command's runs.
type jobFlags struct {
	Job string `placeholder:"CLUSTER" help:"Write a job for the missing runs in place of making them: slurm is an array job."`
}

// checkJob refuses a cluster that no job is written for, and a job whose results are to be printed.
func (f *jobFlags) checkJob(json bool) error {
	kind, _, _ := strings.Cut(f.Job, ",")
	switch {
	case f.Job != "" && json:
		return fmt.Errorf("--json --job %s: a job has no results to print", f.Job)
	case kind == "kubernetes":
		return fmt.Errorf("--job %s: docs/clusters.md has the job for kubectl; --job writes that of "+
			"slurm", f.Job)
	case f.Job != "" && f.Job != "slurm":
		return fmt.Errorf("--job %s: want slurm", f.Job)
	}
	return nil
}

// checkJobWords refuses words that a job file cannot contain, before anything is made.
func checkJobWords(words ...string) error {
	program, here, err := programHere()
	if err != nil {
		return err
	}
	return run.CheckJobWords(append(words, program, here)...)
}

// readableLater refuses points whose trace can be read only once.
func readableLater(points []config.Point) error {
	for i := range points {
		if trace := points[i].Workload.Trace; files.Once(trace) {
			return fmt.Errorf("workload.trace = %q: jobs run later and cannot read it; write the trace to "+
				"a file", trace)
		}
	}
	return nil
}

// programHere returns the path of this program and of the working folder.
func programHere() (program, here string, err error) {
	if program, err = os.Executable(); err == nil {
		here, err = os.Getwd()
	}
	return program, here, err
}

// jobArgs lists the arguments of a job's tasks.
func jobArgs(folder *run.Folder, sets []string, args ...string) []string {
	args = append(args, "--points", folder.Store.Dir())
	for _, set := range sets {
		args = append(args, "--set", set)
	}
	return args
}

// write writes a job and prints how to submit it.
func (f *jobFlags) write(app *App, folder *run.Folder, of string,
	points []config.Point, job *run.Job) (err error) {
	if err := readableLater(points); err != nil {
		return err
	}
	if job.Program, job.WorkDir, err = programHere(); err != nil {
		return err
	}
	file, err := folder.WriteJob(job)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(app.Stdout, "%sSubmit: sbatch %s\nWhen the job has ended, collect: the same "+
		"command without --job. It makes what is still missing.\n", of, file)
	return err
}

// writeJob writes a job for the points, of which some are missing, and prints how to submit it.
func (s *simulateCmd) writeJob(app *App, folder *run.Folder,
	points []config.Point, missing int) error {
	if missing == 0 {
		fmt.Fprintf(app.Stdout, "All of %s are finished; the same command without --job collects them."+
			"\n", answers.Count(len(points), "run"))
		return nil
	}
	of := fmt.Sprintf("%s of %d to make. ", answers.Count(missing, "run"), len(points))
	return s.jobFlags.write(app, folder, of, points, &run.Job{Name: folder.Name(),
		Args:  jobArgs(folder, s.Set, "simulate", cmp.Or(s.Config, experiments.Default)),
		Tasks: min(len(points), run.MostTasks)})
}

// share makes the runs of one task of a job: every n-th of the points.
func (s *simulateCmd) share(ctx context.Context, app *App, points []config.Point) error {
	return s.withStore(app, s.Points, func(store *run.Store) ([]string, error) {
		var own []config.Point
		for i := range points {
			if i%s.Tasks == s.Task%s.Tasks {
				own = append(own, points[i])
			}
		}
		_, notes, err := store.Do(ctx, run.Grid{Run: app.Run, Workers: 1, Again: func(int) {}}, own)
		return notes, err
	})
}

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
