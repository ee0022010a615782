package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
)

// slurmFolder is where a sweep's array job is, within its folder.
const slurmFolder = "slurm"

// maxArrayTasks is below Slurm's default MaxArraySize of 1001.
const maxArrayTasks = 1000

// slurmScript runs the points whose line in points.txt is the task's, modulo
// the number of tasks.
const slurmScript = `#!/bin/sh
#SBATCH --job-name=%[1]s
#SBATCH --array=1-%[2]d
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
cd %[3]s || exit 1
status=0
for point in $(awk -v task="$SLURM_ARRAY_TASK_ID" 'NR %% %[2]d == task %% %[2]d' %[4]s/points.txt); do
  %[5]s point %[4]s/"$point".toml --points %[6]s || status=1
done
exit $status
`

// WriteSlurm writes an array job that runs the points missing from the store,
// in the place of an earlier one:
//
//	slurm/job.sh      to be given to sbatch
//	slurm/points.txt  a hash a line
//	slurm/HASH.toml   the point's configuration
//
// Tasks run program in workDir. It returns the path of job.sh. done is called for each point, and
// when ctx ends first there is no job.sh.
func (f *SweepFolder) WriteSlurm(ctx context.Context, program, workDir string, missing []config.Point,
	done func()) (string, error) {
	dir := filepath.Join(f.dir, slurmFolder)
	if err := f.clearSlurm(dir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	var list strings.Builder
	for i := range missing {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		hash, err := f.Store.Hash(&missing[i])
		if err != nil {
			return "", err
		}
		text, err := missing[i].TOML()
		if err != nil {
			return "", err
		}
		if err := WriteFile(filepath.Join(dir, hash+".toml"), text); err != nil {
			return "", err
		}
		fmt.Fprintln(&list, hash)
		done()
	}
	if err := WriteFile(filepath.Join(dir, "points.txt"), []byte(list.String())); err != nil {
		return "", err
	}
	job := filepath.Join(dir, "job.sh")
	script := fmt.Sprintf(slurmScript, strings.Map(jobNameRune, f.sweep.Name), min(len(missing), maxArrayTasks),
		shellQuote(workDir), shellQuote(dir), shellQuote(program), shellQuote(f.Store.Dir()))
	return job, WriteFile(job, []byte(script))
}

// clearSlurm removes an earlier array job, and nothing else.
func (f *SweepFolder) clearSlurm(dir string) error {
	configs, err := filepath.Glob(filepath.Join(dir, "*.toml"))
	if err != nil {
		return err
	}
	for _, path := range append(configs, filepath.Join(dir, "points.txt"), filepath.Join(dir, "job.sh")) {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// jobNameRune keeps a job's name in one word.
func jobNameRune(r rune) rune {
	if r <= ' ' || r == '"' || r == '\'' {
		return '_'
	}
	return r
}

// shellQuote makes one word of s for a POSIX shell.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
