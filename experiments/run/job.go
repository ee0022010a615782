package run

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/internal/files"
)

// pointsFile lists the points of a job, one hash per line.
const pointsFile = "points.txt"

// Cluster writes the job file for a cluster's scheduler.
type Cluster interface {
	// Folder is the job's folder within the result folder.
	Folder() string
	// File is the name of the job's file.
	File() string
	// Text returns the job file: each of the tasks 1 to n, or 0 to n-1, runs the program with the
	// job's arguments.
	Text(job *Job) ([]byte, error)
}

// Job is the common part of a cluster's tasks.
type Job struct {
	Name    string
	Tasks   int
	Folder  string   // of the job
	WorkDir string   // of the program: other paths may be relative to it
	Program string   // path of the program on this machine
	Args    []string // of the program; the task's number is in the environment
}

// WriteJob writes a job that runs the points missing from the store. It replaces an earlier job for
// that cluster:
//
//	points.txt  one hash per line
//	HASH.toml   the point's configuration
//
// It returns the path of the cluster's file. done is called for each point. If ctx ends early,
// there is no cluster file.
func (f *Folder) WriteJob(ctx context.Context, c Cluster, program, workDir string,
	missing []config.Point, done func()) (string, error) {
	dir := filepath.Join(f.dir, c.Folder())
	job := &Job{Name: f.question.Name, Tasks: min(len(missing), maxTasks), Folder: dir,
		WorkDir: workDir, Program: program,
		Args: []string{"task", dir, "--points", f.Store.Dir()}}
	if err := job.check(); err != nil {
		return "", err
	}
	f.fresh = false // the job's runs come later
	if err := clearJob(dir, filepath.Join(dir, c.File())); err != nil {
		return "", err
	}
	if err := f.writeTasks(ctx, dir, missing, done); err != nil {
		return "", err
	}
	return writeJob(c, job)
}

func (j *Job) check() error {
	return CheckJobWords(append([]string{j.Name, j.Folder, j.WorkDir, j.Program}, j.Args...)...)
}

// CheckJobWords refuses names that could end a comment or a word of a job file and continue as a
// command.
func CheckJobWords(words ...string) error {
	for _, text := range words {
		if strings.ContainsFunc(text, unicode.IsControl) || !utf8.ValidString(text) {
			return fmt.Errorf("%q: a name or setting of a job must not have a control character", text)
		}
	}
	return nil
}

// WritePlanJob writes a job whose tasks run the program with the same arguments and share the work.
// It returns the path of the cluster's file.
func (f *Folder) WritePlanJob(c Cluster, job *Job) (string, error) {
	f.fresh = false // the job's runs come later
	job.Folder = filepath.Join(f.dir, c.Folder())
	if err := job.check(); err != nil {
		return "", err
	}
	if err := clearJob(job.Folder, filepath.Join(job.Folder, c.File())); err != nil {
		return "", err
	}
	return writeJob(c, job)
}

// writeJob writes the cluster's file into the job's folder.
func writeJob(c Cluster, job *Job) (string, error) {
	job.Args = append(job.Args, "--tasks", fmt.Sprint(job.Tasks))
	text, err := c.Text(job)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(job.Folder, 0o755); err != nil {
		return "", err
	}
	file := filepath.Join(job.Folder, c.File())
	return file, WriteFile(file, text)
}

// maxTasks is below Slurm's default MaxArraySize of 1001.
const maxTasks = 1000

// writeTasks writes the inputs of the tasks.
func (f *Folder) writeTasks(ctx context.Context, dir string, missing []config.Point,
	done func()) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var list strings.Builder
	for i := range missing {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		hash, err := f.Store.Hash(&missing[i])
		if err != nil {
			return err
		}
		text, err := missing[i].TOML()
		if err != nil {
			return err
		}
		if err := WriteFile(filepath.Join(dir, hash+".toml"), text); err != nil {
			return err
		}
		fmt.Fprintln(&list, hash)
		done()
	}
	return WriteFile(filepath.Join(dir, pointsFile), []byte(list.String()))
}

// clearJob removes the files of an earlier job only.
func clearJob(dir, file string) error {
	configs, err := files.Glob(dir, "*.toml")
	if err != nil {
		return err
	}
	for _, path := range append(configs, filepath.Join(dir, pointsFile), file) {
		if err := ignoreAbsent(os.Remove(path)); err != nil {
			return err
		}
	}
	return nil
}

// TaskPoints reads the points of one of the tasks of a job in dir: every tasks-th line of
// points.txt. Tasks may be numbered from 0 or from 1.
func TaskPoints(dir string, task, tasks int) ([]config.Point, error) {
	text, err := files.ReadResult(filepath.Join(dir, pointsFile))
	if err != nil {
		return nil, err
	}
	var points []config.Point
	for i, hash := range strings.Fields(string(text)) {
		if (i+1)%tasks != task%tasks {
			continue
		}
		point, err := config.LoadPoint(filepath.Join(dir, hash+".toml"))
		if err != nil {
			return nil, err
		}
		points = append(points, point)
	}
	return points, nil
}
