package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/files"
)

// jobFlags say where the runs of a command are made.
type jobFlags struct {
	Engine string `enum:"local,slurm,kubernetes" default:"local" help:"Where runs are made: local, slurm, which writes an array job, or kubernetes, which writes an Indexed Job. Default: ${default}."`
	Image  string `placeholder:"IMAGE" help:"Container of this program, for --engine kubernetes."`
	Claim  string `placeholder:"NAME" help:"Persistent volume claim that holds the working folder, for --engine kubernetes."`
}

// cluster is where --engine has the runs made, nil on this machine.
func (f *jobFlags) cluster(json bool) (run.Cluster, error) {
	if f.Engine != "kubernetes" && f.Image+f.Claim != "" {
		return nil, errors.New("--image and --claim are for --engine kubernetes")
	}
	if f.Engine == "local" {
		return nil, nil
	}
	if json {
		return nil, fmt.Errorf("--json --engine %s: a job has no results to print", f.Engine)
	}
	if f.Engine == "slurm" {
		return run.Slurm{}, nil
	}
	if f.Image == "" || f.Claim == "" {
		return nil, errors.New("--engine kubernetes needs --image, the container of this program, and " +
			"--claim, " +
			"the persistent volume claim that holds the working folder")
	}
	cluster := run.Kubernetes{Image: f.Image, Claim: f.Claim}
	return cluster, cluster.Check()
}

// checkJobWords refuses words that no job's file can have, before anything is made.
func checkJobWords(words ...string) error {
	program, here, err := programHere()
	if err != nil {
		return err
	}
	return run.CheckJobWords(append(words, program, here)...)
}

// printSubmit says what is to be done with a job.
func (f *jobFlags) printSubmit(w io.Writer, job string) {
	submit := map[string]string{"slurm": "sbatch", "kubernetes": "kubectl apply -f"}[f.Engine]
	fmt.Fprintf(w, "Submit: %s %s\n"+
		"When the job has ended, collect: the same command without --engine %s. It makes what is still "+
		"missing.\n", submit, job, f.Engine)
}

// readableLater refuses points whose trace can be read once only.
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
