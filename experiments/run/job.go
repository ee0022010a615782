package run

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"
)

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

// MostTasks is below Slurm's default MaxArraySize of 1001.
const MostTasks = 1000

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

// WriteJob writes a job whose tasks run the program with the same arguments and share the work. It
// replaces an earlier job for that cluster, and returns the path of the cluster's file.
func (f *Folder) WriteJob(c Cluster, job *Job) (string, error) {
	f.fresh = false // the job's runs come later
	job.Folder = filepath.Join(f.dir, c.Folder())
	job.Args = append(job.Args, "--tasks", fmt.Sprint(job.Tasks))
	words := append([]string{job.Name, job.Folder, job.WorkDir, job.Program}, job.Args...)
	if err := CheckJobWords(words...); err != nil {
		return "", err
	}
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
