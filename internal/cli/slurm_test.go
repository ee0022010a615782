package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// slurmSweep has four runs of seconds: a task that is seen to run is cancelled before it ends.
const slurmSweep = `seed = [1, 2]
model = "llama3-8b"
gpu = "h100-80gb"
[workload]
requests = 2400
rate = 0.5
[system]
preset = "sparseserve"
[[axis]]
grid.offload.working_set_steps = [8, 20]
`

// slurmPlan has four candidates, whose runs depend on each other's prices.
const slurmPlan = `model = "llama3.1-8b"
[workload]
prompt_lengths = "lognormal(2048, 0.8, 32768)"
output_lengths = "uniform(50, 400)"
rate = 20
requests = 600
[system]
preset = "vllm-0.15"
[slo]
ttft_s = 2
tbt_s = 0.15
[plan]
max_replicas = 8
[[axis]]
grid.gpu = ["a100-80gb", "h100-80gb"]
grid.system.tensor_parallel = [1, 2]
`

// TestSlurmCluster gives array jobs to a Slurm of the nodes n1 and n2 of this host: .ci/slurm
// starts one. Whatever befalls a job, the files of a sweep and of a plan equal a local run's.
func TestSlurmCluster(t *testing.T) {
	if os.Getenv("SLURM_CONF") == "" {
		t.Skip("no SLURM_CONF; .ci/slurm has one")
	}
	program := buildProgram(t)
	t.Chdir(t.TempDir())
	writeFile(t, "s.toml", slurmSweep)
	writeFile(t, "p.toml", slurmPlan)
	for _, command := range [][]string{{"simulate", "s.toml"}, {"plan", "p.toml"}} {
		local := command[0]
		shell(t, program, append(command, "--out", local)...)
		for _, c := range []struct {
			name   string
			befall func(t *testing.T, job string)
			again  bool // runs of a sweep are missing after the job; a plan's tasks make each other's
		}{
			{"nothing", func(*testing.T, string) {}, false},
			{"a killed task", cancelTask, local == "simulate"},
			{"a lost node", loseNode, false},
		} {
			t.Run(local+", "+c.name, func(t *testing.T) {
				out := local + "-" + strings.ReplaceAll(c.name, " ", "-")
				command := slices.Concat(command, []string{"--out", out})
				throughSlurm(t, program, command, local, c.befall, c.again)
			})
		}
	}
}

// throughSlurm has a job made, befallen and collected, and compares its folder with the local one.
func throughSlurm(t *testing.T, program string, command []string, local string,
	befall func(t *testing.T, job string), again bool) {
	out := command[len(command)-1]
	all := finishedRuns(t, local+"/runs")
	array := []string{"--parsable", "--array=1-4", "--requeue", "--open-mode=append",
		"--output=/dev/null", "--wrap", fmt.Sprintf("exec %s %s --tasks 4", program,
			strings.Join(command, " "))}
	job := strings.TrimSpace(shell(t, "sbatch", array...))
	befall(t, job)
	waitFor(t, "the job's end", func() bool { return shell(t, "squeue", "-h", "-j", job) == "" })
	if missing := finishedRuns(t, out+"/runs") < all; missing != again {
		t.Errorf("%d runs of %d are finished", finishedRuns(t, out+"/runs"), all)
	}
	shell(t, "sbatch", append([]string{"--wait"}, array...)...) // makes what is missing, if anything
	if made := finishedRuns(t, out+"/runs"); made != all {
		t.Errorf("after the second job %d runs of %d are finished", made, all)
	}
	shell(t, program, command...)
	compareFolders(t, local, out, 6)
}

// shell runs a command and returns what it prints.
func shell(t *testing.T, name string, args ...string) string {
	t.Helper()
	text, err := exec.Command(name, args...).Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, text)
	}
	return string(text)
}

// waitFor waits until something holds.
func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s does not come:\n%s%s", what, shell(t, "squeue", "-r"),
				shell(t, "sinfo", "-N", "-l"))
		}
	}
}

// cancelTask cancels a task while it runs.
func cancelTask(t *testing.T, job string) {
	running := ""
	waitFor(t, "a running task", func() bool {
		running = shell(t, "squeue", "-h", "-t", "R", "-o", "%F_%K", "-j", job)
		return running != ""
	})
	shell(t, "scancel", strings.Fields(running)[0])
}

// loseNode kills all of node n2 while it runs a task, until the task is queued again. The task then
// starts at once, on the other node, instead of after Slurm's two minutes.
func loseNode(t *testing.T, job string) {
	running := ""
	waitFor(t, "a task on n2", func() bool {
		running = strings.TrimSpace(shell(t, "squeue", "-h", "-t", "R", "-w", "n2", "-o", "%A",
			"-j", job))
		return running != ""
	})
	pid, err := os.ReadFile(filepath.Join(filepath.Dir(os.Getenv("SLURM_CONF")), "slurmd.n2.pid"))
	if err != nil {
		t.Fatal(err)
	}
	var daemon int
	if _, err := fmt.Sscan(string(pid), &daemon); err != nil {
		t.Fatal(err)
	}
	var steps []string
	waitFor(t, "the task's process", func() bool { // which the controller counts before it is there
		found, _ := exec.Command("pgrep", "-f", "^slurmstepd: \\["+running+"\\.").Output()
		steps = strings.Fields(string(found))
		return len(steps) > 0
	})
	for _, step := range steps {
		tasks, _ := exec.Command("pgrep", "-P", step).Output() // of no task left: status 1
		steps = append(steps, strings.Fields(string(tasks))...)
	}
	if err := syscall.Kill(daemon, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for _, pid := range steps {
		_ = exec.Command("kill", "-9", pid).Run() // it may have ended by itself
	}
	waitFor(t, "the loss of n2",
		func() bool { return strings.Contains(shell(t, "sinfo", "-h", "-n", "n2", "-o", "%T"), "down") })
	shell(t, "scontrol", "update", "JobId="+running, "StartTime=now")
	waitFor(t, "the task's second start", func() bool {
		waiting := strings.Fields(shell(t, "squeue", "-h", "-t", "PD", "-o", "%A", "-j", job))
		return !slices.Contains(waiting, running)
	})
	// Not before: slurmctld 22.05 still ends the task's first start on n2, and there the second too.
	shell(t, "slurmd", "-N", "n2")
	waitFor(t, "the return of n2",
		func() bool { return !strings.Contains(shell(t, "sinfo", "-h", "-n", "n2", "-o", "%T"), "down") })
}
