package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/files"
)

// jobFlags make a cluster run the command's runs, or say which part of a job's work the command
// does.
type jobFlags struct {
	Job   string `placeholder:"CLUSTER" help:"Write a job for the missing runs in place of making them: slurm is an array job."`
	Tasks int    `hidden:"" help:"Tasks of the job that this is a task of."`
	Task  int    `hidden:"" env:"SLURM_ARRAY_TASK_ID,JOB_COMPLETION_INDEX" help:"This task, of a number from 0 or 1."`
}

// check refuses, before anything is made, a cluster that no job is written for, a job whose results
// are to be printed, and words that a job file cannot contain.
func (f *jobFlags) check(json bool, words ...string) error {
	kind, _, _ := strings.Cut(f.Job, ",")
	switch {
	case f.Job == "":
		return nil
	case json:
		return fmt.Errorf("--json --job %s: a job has no results to print", f.Job)
	case kind == "kubernetes":
		return fmt.Errorf("--job %s: docs/clusters.md has the job for kubectl; --job writes that of "+
			"slurm", f.Job)
	case f.Job != "slurm":
		return fmt.Errorf("--job %s: want slurm", f.Job)
	}
	program, here, err := programHere()
	if err != nil {
		return err
	}
	return run.CheckJobWords(append(words, program, here)...)
}

// programHere returns the path of this program and of the working folder.
func programHere() (program, here string, err error) {
	if program, err = os.Executable(); err == nil {
		here, err = os.Getwd()
	}
	return program, here, err
}

// write writes a job whose tasks make the runs of points, and prints how to submit it. job has its
// name, the command without settings, and the number of tasks.
func (f *jobFlags) write(app *App, folder *run.Folder, of string, points []config.Point,
	sets []string, job *run.Job) (err error) {
	for i := range points {
		if trace := points[i].Workload.Trace; files.Once(trace) {
			return fmt.Errorf("workload.trace = %q: jobs run later and cannot read it; write the trace to "+
				"a file", trace)
		}
	}
	if job.Program, job.WorkDir, err = programHere(); err != nil {
		return err
	}
	job.Args = append(job.Args, "--points", folder.Store.Dir())
	for _, set := range sets {
		job.Args = append(job.Args, "--set", set)
	}
	file, err := folder.WriteJob(job)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(app.Stdout, "%s Submit: sbatch %s\nWhen the job has ended, collect: the "+
		"same command without --job. It makes what is still missing.\n", of, file)
	return err
}

// share does the work of one task on the store of the job. The runs stay in the store.
func (f *jobFlags) share(app *App, dir string,
	do func(*run.Store) (notes []string, err error)) (err error) {
	if f.Task < 0 || f.Task > f.Tasks {
		return fmt.Errorf("--task %d --tasks %d: no such task", f.Task, f.Tasks)
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
