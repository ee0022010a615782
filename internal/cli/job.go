package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/answers"
	"github.com/sparseserve/sparseserve/internal/files"
)

// jobFlags make a cluster run the command's runs.
type jobFlags struct {
	Job string `placeholder:"CLUSTER" help:"Write a job for the missing runs in place of making them: slurm is an array job; kubernetes,image=IMAGE,claim=NAME an Indexed Job, of a container of this program and the persistent volume claim that holds the working folder."`
}

// cluster returns the cluster of --job; nil to run on this machine.
func (f *jobFlags) cluster(json bool) (run.Cluster, error) {
	kind, rest, _ := strings.Cut(f.Job, ",")
	switch {
	case f.Job == "":
		return nil, nil
	case json:
		return nil, fmt.Errorf("--json --job %s: a job has no results to print", f.Job)
	case f.Job == "slurm":
		return run.Slurm{}, nil
	case kind != "kubernetes":
		return nil, fmt.Errorf("--job %s: want slurm or kubernetes,image=IMAGE,claim=NAME", f.Job)
	}
	var cluster run.Kubernetes
	for part := range strings.SplitSeq(rest, ",") {
		name, value, _ := strings.Cut(part, "=")
		switch name {
		case "image":
			cluster.Image = value
		case "claim":
			cluster.Claim = value
		default:
			return nil, fmt.Errorf("--job %s: %q: want image=IMAGE and claim=NAME", f.Job, part)
		}
	}
	if err := cluster.Check(); err != nil {
		return nil, fmt.Errorf("--job %s: %w", f.Job, err)
	}
	return cluster, nil
}

// checkJobWords refuses words that a job file cannot contain, before anything is made.
func checkJobWords(words ...string) error {
	program, here, err := programHere()
	if err != nil {
		return err
	}
	return run.CheckJobWords(append(words, program, here)...)
}

// printSubmit prints how to submit a job.
func (f *jobFlags) printSubmit(w io.Writer, job string) {
	submit := "kubectl apply -f"
	if f.Job == "slurm" {
		submit = "sbatch"
	}
	fmt.Fprintf(w, "Submit: %s %s\n"+
		"When the job has ended, collect: the same command without --job. It makes what is still "+
		"missing.\n", submit, job)
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

// writeJob writes a job for the missing points and prints how to submit it.
func (s *simulateCmd) writeJob(ctx context.Context, app *App, cluster run.Cluster,
	folder *run.Folder, points, missing []config.Point) error {
	if len(missing) == 0 {
		fmt.Fprintf(app.Stdout, "All of %s are finished; the same command without --job collects them."+
			"\n", answers.Count(len(points), "run"))
		return nil
	}
	if err := readableLater(missing); err != nil {
		return err
	}
	program, here, err := programHere()
	if err != nil {
		return err
	}
	bar := newProgress(app.Stderr, "points")
	bar.planned(len(missing))
	job, err := folder.WriteJob(ctx, cluster, program, here, missing, bar.finished)
	bar.close()
	if stopped(ctx, err) {
		return fmt.Errorf("%w; no job is written: the same command writes it", errInterrupted)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(app.Stdout, "%s of %d to make. ", answers.Count(len(missing), "run"), len(points))
	s.printSubmit(app.Stdout, job)
	return nil
}
