package run

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/testkit"
)

func TestJobs(t *testing.T) {
	f, err := openSweep("out", "", mustSweep(t, testkit.Write(t, "s.toml", smallSweep)))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	job := Job{Name: "s", Tasks: 4, Program: "/opt/it's/sparseserve", WorkDir: "/home/me",
		Args: []string{"simulate", "s.toml", "--points", "out/runs"}}
	for golden, c := range map[string]Cluster{"slurm.sh": Slurm{}, "kubernetes.json": Kubernetes{
		"sparseserve:1", "data"}} {
		of := job
		path, err := f.WriteJob(c, &of)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		testkit.Golden(t, golden, filepath.ToSlash(string(text)))
	}
	job.Name = "s\nrm"
	if _, err := f.WriteJob(Slurm{}, &job); err == nil {
		t.Error("a name with a new line is in a job")
	}
}

// What a pod cannot reach is refused, and names follow the rules of DNS labels.
func TestKubernetesLimits(t *testing.T) {
	k := Kubernetes{"sparseserve:1", "data"}
	for _, args := range [][]string{{"simulate", "/elsewhere/out"},
		{"simulate", "out", "--points", "../points"}, {"simulate", "/data2/out"}} {
		if _, err := k.Text(&Job{Name: "s", Tasks: 2, WorkDir: "/data", Args: args}); err == nil ||
			!strings.Contains(err.Error(), "is outside /data") {
			t.Errorf("%v: %v", args, err)
		}
	}
	for name, want := range map[string]string{"My sweep_2": "my-sweep-2", "...": "sweep",
		strings.Repeat("a", 90): strings.Repeat("a", 57)} {
		text, err := k.Text(&Job{Name: name, Tasks: 1, WorkDir: "/data",
			Args: []string{"simulate", "/data/out"}})
		var job struct{ Metadata struct{ Name string } }
		if err := errors.Join(err, json.Unmarshal(text, &job)); err != nil || job.Metadata.Name != want {
			t.Errorf("%s: %s, %v", name, job.Metadata.Name, err)
		}
	}
}
