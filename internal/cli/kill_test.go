package cli

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sparseserve/sparseserve/experiments/run"
)

const killedSweep = `seed = [1, 2, 3]
[workload]
requests = 20
rate = [0.1, 0.2]
[system]
preset = "sparseserve"
[[axis]]
grid.offload.working_set_steps = [4, 8, 16, 20]
`

// buildProgram builds the whole program.
func buildProgram(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds the program")
	}
	path := filepath.Join(t.TempDir(), "sparseserve")
	if out, err := exec.Command("go", "build", "-o", path,
		"github.com/sparseserve/sparseserve").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

func TestSweepProgram(t *testing.T) {
	program := buildProgram(t)
	t.Run("kill and resume", func(t *testing.T) { testKillAndResume(t, program) })
	t.Run("jobs", func(t *testing.T) { testJobs(t, program) })
	t.Run("a plan's job", func(t *testing.T) { testPlanJob(t, program) })
	t.Run("full disk", func(t *testing.T) { testFullDisk(t, program) })
}

// startAndStop starts a sweep and sends it a signal once some points are finished and another is
// made in part.
func startAndStop(t *testing.T, points int, program string, signal os.Signal,
	args ...string) (stderr string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	inPart := func() bool {
		begun, err := filepath.Glob("out/runs/.*" + run.Unfinished)
		return err == nil && len(begun) > 0
	}
	for finishedRuns(t, "out/runs") < points || !inPart() {
		select {
		case err := <-ended:
			t.Fatalf("ended by itself: %v\n%s", err, errs.String())
		case <-time.After(5 * time.Millisecond):
		}
	}
	if err := cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	<-ended
	return errs.String()
}

// testKillAndResume: a sweep that is killed in the middle and given again
// leaves the same bytes as one that is not.
func testKillAndResume(t *testing.T, program string) {
	t.Chdir(t.TempDir())
	writeFile(t, "s.toml", killedSweep)
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)

	startAndStop(t, 3, program, syscall.SIGKILL, "simulate", "s.toml", "--out", "out", "--workers",
		"2")
	kept := finishedRuns(t, "out/runs")
	if kept >= 20 {
		t.Fatalf("%d points were finished before the kill", kept)
	}
	errs := startAndStop(t, kept+1, program, os.Interrupt, "simulate", "s.toml", "--out", "out",
		"--workers", "1")
	if !strings.Contains(errs, "of 24 runs finished") {
		t.Errorf("stderr %q", errs)
	}
	if now := finishedRuns(t, "out/runs"); now < kept {
		t.Errorf("%d points kept, then %d", kept, now)
	}
	for _, dir := range []string{"out", "whole"} {
		if text, err := exec.Command(program, "simulate", "s.toml", "--out",
			dir).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	compareFolders(t, "whole", "out", 6)
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("the killed sweep left %d files elsewhere (%v)", len(left), err)
	}
}

// compareFolders compares all files below two folders byte by byte. There must be at least n.
func compareFolders(t *testing.T, a, b string, least int) {
	t.Helper()
	read := func(dir string) map[string][]byte {
		files := map[string][]byte{}
		err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				files[path], err = os.ReadFile(filepath.Join(dir, path))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	first, second := read(a), read(b)
	if len(first) != len(second) || len(first) < least {
		t.Errorf("%d files in %s, %d in %s", len(first), a, len(second), b)
	}
	for path, text := range first {
		if !bytes.Equal(second[path], text) {
			t.Errorf("%s differs", path)
		}
	}
}

// testFullDisk runs a sweep in a file system that is too small for it.
func testFullDisk(t *testing.T, program string) {
	t.Chdir(t.TempDir())
	writeFile(t, "s.toml", killedSweep)
	writeFile(t, "run.sh", "mkdir out && mount -t tmpfs -o size=72k none out || exit 99\n"+
		`"$1" simulate s.toml --out out --workers 2; echo "status $?"; ls out/runs; mount -o remount,size=100m out; "$1" simulate s.toml --out out`)
	text, err := exec.Command("unshare", "-rm", "sh", "run.sh", program).CombinedOutput()
	out := string(text)
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() == 99 ||
		!strings.Contains(out, "status")) {
		t.Skipf("no file system of one's own here: %v\n%s", err, out)
	}
	if err != nil || !strings.Contains(out, "no space left on device; what is finished is kept: "+
		"make room and give the same command again\nstatus 1\n") {
		t.Errorf("%v\n%s", err, out)
	}
	if !strings.Contains(out, "runs finished before") || strings.Contains(out,
		"24 of 24 runs finished before") {
		t.Errorf("nothing finished was kept:\n%s", out)
	}
}

// testJobs runs the tasks of a job as Slurm and Kubernetes (docs/clusters.md) would, and collects
// them.
func testJobs(t *testing.T, program string) {
	t.Chdir(t.TempDir())
	writeFile(t, "s.toml", "seed = [1, 2, 3]\n[workload]\nrate = 0.1\nrequests = "+
		"5\n[system]\npreset = \"vllm\"\n")
	sweep := func(args ...string) string {
		t.Helper()
		text, err := exec.Command(program,
			append([]string{"simulate", "s.toml", "--out"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		return string(text)
	}
	sweep("whole")
	runTask(t, "SLURM_ARRAY_TASK_ID", []string{"1", "2", "3"}, program, "simulate", "s.toml",
		"--out", "array", "--tasks", "3")
	runTask(t, "JOB_COMPLETION_INDEX", []string{"0", "1", "2"}, program, "simulate", "s.toml",
		"--points", "indexed/runs", "--tasks", "3")

	for _, dir := range []string{"array", "indexed"} {
		if out := sweep(dir); !strings.Contains(out, ": 3 runs") ||
			!strings.Contains(out, "\n3 of 3 runs finished before and are kept in ") {
			t.Error(out)
		}
		compareFolders(t, "whole", dir, 6)
	}
}

// testPlanJob runs the tasks of a plan's job at once, and collects them.
func testPlanJob(t *testing.T, program string) {
	t.Chdir(t.TempDir())
	writeFile(t, "p.toml", strings.NewReplacer("requests = 600", "requests = 100", "rate = 20",
		"rate = 4").Replace(slurmPlan))
	shell(t, program, "plan", "p.toml", "--out", "whole")
	var wait sync.WaitGroup
	for task := range 4 {
		wait.Go(func() {
			runTask(t, "SLURM_ARRAY_TASK_ID", []string{strconv.Itoa(1 + task)}, program, "plan",
				"p.toml", "--out", "array", "--tasks", "4")
		})
	}
	wait.Wait()
	made := finishedRuns(t, "array/runs")
	shell(t, program, "plan", "p.toml", "--out", "array")
	if again := finishedRuns(t, "array/runs") - made; again != 0 {
		t.Errorf("collecting made %d runs more than the job's %d", again, made)
	}
	compareFolders(t, "whole", "array", 6)
}

// runTask runs a command for each number of a task, which prints nothing.
func runTask(t *testing.T, variable string, tasks []string, program string, args ...string) {
	t.Helper()
	for _, task := range tasks {
		cmd := exec.Command(program, args...)
		cmd.Env = append(os.Environ(), variable+"="+task)
		if text, err := cmd.CombinedOutput(); err != nil || len(text) > 0 {
			t.Errorf("%v\n%s", err, text)
		}
	}
}
