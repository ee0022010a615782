package run

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Slurm makes an array job for sbatch: see https://slurm.schedmd.com/sbatch.html.
type Slurm struct{}

// Folder implements Cluster.
func (Slurm) Folder() string { return "slurm" }

// File implements Cluster.
func (Slurm) File() string { return "job.sh" }

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

// Text implements Cluster.
func (Slurm) Text(j *Job) ([]byte, error) {
	log, err := filepath.Abs(filepath.Join(j.WorkDir, j.Folder))
	if filepath.IsAbs(j.Folder) {
		log, err = j.Folder, nil
	}
	if err != nil {
		return nil, err
	}
	words := []string{shellQuote(j.Program)}
	for _, a := range j.Args {
		words = append(words, shellQuote(a))
	}
	return fmt.Appendf(nil, slurmScript, strings.Map(jobNameRune, j.Name), j.Tasks,
		sbatchQuote(log)+"/task-%a.log", shellQuote(j.WorkDir), strings.Join(words, " ")), nil
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
