package run

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/testkit"
)

// missingOf opens a sweep's folder of which nothing is made.
func missingOf(t *testing.T, s *config.Sweep) (*Folder, []config.Point) {
	t.Helper()
	f, err := openSweep("out", "", s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	missing, _, err := f.Store.Missing(f.question.Points(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return f, missing
}

func TestJobs(t *testing.T) {
	s := mustSweep(t, testkit.Write(t, "s.toml", smallSweep))
	f, missing := missingOf(t, s)
	for golden, c := range map[string]Cluster{"slurm.sh": Slurm{}, "kubernetes.json": Kubernetes{
		"sparseserve:1", "data"}} {
		written := 0
		job, err := f.WriteJob(t.Context(), c, "/opt/it's/sparseserve", "/home/me", missing,
			func() { written++ })
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(job)
		if err != nil {
			t.Fatal(err)
		}
		testkit.Golden(t, golden, filepath.ToSlash(string(text)))
		if written != len(missing) {
			t.Errorf("%d points counted, want %d", written, len(missing))
		}
	}

	// Each configuration is the point that its name says.
	for i := range missing {
		name, err := f.Store.Hash(&missing[i])
		if err != nil {
			t.Fatal(err)
		}
		points := mustLoad(t, filepath.Join("out/slurm", name+".toml")).Points()
		if hash, err := f.Store.Hash(&points[0]); len(points) != 1 || err != nil || hash != name {
			t.Errorf("%s.toml makes %d points, the first %s, %v", name, len(points), hash, err)
		}
	}

	// A second job in its place has its own points alone.
	if _, err := f.WriteJob(t.Context(), Slurm{}, "p", "/", missing[:2], func() {}); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob("out/slurm/*.toml"); len(left) != 2 {
		t.Errorf("configurations %v, want two", left)
	}

	// An interrupt leaves no job.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.WriteJob(ctx, Slurm{}, "p", "/", missing, func() {}); !errors.Is(err,
		context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if _, err := os.Stat("out/slurm/job.sh"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an interrupted job is there: %v", err)
	}
}

// With fewer tasks than points every point belongs to one task, numbered from 0 or from 1.
func TestTasksShareThePoints(t *testing.T) {
	f, missing := missingOf(t, mustSweep(t, testkit.Write(t, "s.toml", smallSweep)))
	if _, err := f.WriteJob(t.Context(), Slurm{}, "p", "/", missing, func() {}); err != nil {
		t.Fatal(err)
	}
	for first := range 2 {
		seen := map[string]int{}
		for task := range 3 {
			points, err := TaskPoints("out/slurm", first+task, 3)
			if err != nil {
				t.Fatal(err)
			}
			for i := range points {
				hash, err := f.Store.Hash(&points[i])
				if err != nil {
					t.Fatal(err)
				}
				seen[hash]++
			}
		}
		for hash, n := range seen {
			if n != 1 {
				t.Errorf("%d tasks have %s", n, hash)
			}
		}
		if len(seen) != len(missing) {
			t.Errorf("from %d: %d points of %d", first, len(seen), len(missing))
		}
	}
}

// What a pod cannot reach is refused, and names follow the rules of DNS labels.
func TestKubernetesLimits(t *testing.T) {
	k := Kubernetes{"sparseserve:1", "data"}
	for _, args := range [][]string{{"task", "/elsewhere/out"},
		{"task", "out", "--points", "../points"}, {"task", "/data2/out"}} {
		if _, err := k.Text(&Job{Name: "s", Tasks: 2, WorkDir: "/data", Args: args}); err == nil ||
			!strings.Contains(err.Error(), "is outside /data") {
			t.Errorf("%v: %v", args, err)
		}
	}
	for name, want := range map[string]string{"My sweep_2": "my-sweep-2", "...": "sweep",
		strings.Repeat("a", 90): strings.Repeat("a", 57)} {
		text, err := k.Text(&Job{Name: name, Tasks: 1, WorkDir: "/data",
			Args: []string{"task", "/data/out"}})
		var job struct{ Metadata struct{ Name string } }
		if err := errors.Join(err, json.Unmarshal(text, &job)); err != nil || job.Metadata.Name != want {
			t.Errorf("%s: %s, %v", name, job.Metadata.Name, err)
		}
	}
}
