package run

import (
	"os"
	"path/filepath"
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
	path, err := f.WriteJob(&job)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	testkit.Golden(t, "slurm.sh", filepath.ToSlash(string(text)))
	job.Name = "s\nrm"
	if _, err := f.WriteJob(&job); err == nil {
		t.Error("a name with a new line is in a job")
	}
}
