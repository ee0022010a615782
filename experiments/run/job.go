package run

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Job is an array job of Slurm: see https://slurm.schedmd.com/sbatch.html.
type Job struct {
	Name    string
	Tasks   int
	WorkDir string   // of the program: other paths may be relative to it
	Program string   // path of the program on this machine
	Args    []string // of the program; the task's number is in the environment
}

// MostTasks is below Slurm's default MaxArraySize of 1001.
const MostTasks = 1000

// slurmScript runs one task. If its node fails, the task is queued again and makes its remaining
// runs; its log is appended to.
const slurmScript = `#!/bin/sh
#SBATCH --job-name=%s
#SBATCH --array=1-%d
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=%s
cd %s || exit 1
exec %s
`

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

// WriteJob writes the file of a job whose tasks run the program with the same arguments and share
// the work. It replaces an earlier one.
func (f *Folder) WriteJob(job *Job) (file string, err error) {
	f.fresh = false // the job's runs come later
	dir := filepath.Join(f.dir, "slurm")
	log := dir
	if !filepath.IsAbs(dir) {
		if log, err = filepath.Abs(filepath.Join(job.WorkDir, dir)); err != nil {
			return "", err
		}
	}
	all := append([]string{job.Program}, job.Args...)
	all = append(all, "--tasks", fmt.Sprint(job.Tasks))
	if err := CheckJobWords(append(all, job.Name, dir, job.WorkDir)...); err != nil {
		return "", err
	}
	words := make([]string, len(all))
	for i, word := range all {
		words[i] = shellQuote(word)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	file = filepath.Join(dir, "job.sh")
	return file, WriteFile(file, fmt.Appendf(nil, slurmScript, strings.Map(jobNameRune, job.Name),
		job.Tasks, sbatchQuote(log)+"/task-%a.log", shellQuote(job.WorkDir), strings.Join(words, " ")))
}

// jobNameRune replaces runes that would split a job's name into words.
func jobNameRune(r rune) rune {
	if r <= ' ' || r == '"' || r == '\'' {
		return '_'
	}
	return r
}

// shellQuote quotes s as one word for a POSIX shell.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// sbatchQuote quotes s as one word for an #SBATCH line, with a literal %.
func sbatchQuote(s string) string {
	return `"` + strings.NewReplacer(`"`, `\"`, `\`, `\\`, "%", "%%").Replace(s) + `"`
}
