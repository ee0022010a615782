package run

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/testkit"
)

func TestSlurmScript(t *testing.T) {
	s := mustSweep(t, testkit.Write(t, "s.toml", smallSweep))
	f, err := OpenSweepFolder("out", "", "test", s)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	missing, _, err := f.Store.Missing(f.Points())
	if err != nil {
		t.Fatal(err)
	}
	written := 0
	job, err := f.WriteSlurm(t.Context(), "/opt/it's/sparseserve", "/home/me", missing, func() { written++ })
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(job)
	if err != nil {
		t.Fatal(err)
	}
	testkit.Golden(t, "slurm.sh", filepath.ToSlash(string(text)))
	if written != len(missing) {
		t.Errorf("%d points counted, want %d", written, len(missing))
	}

	// Each configuration is the point that its name says.
	hashes := config.NewHasher()
	for _, p := range mustPoints(t, s) {
		points := mustLoad(t, filepath.Join("out/slurm", p.Hash+".toml")).Points()
		if hash, err := hashes.Hash(&points[0]); len(points) != 1 || err != nil || hash != p.Hash {
			t.Errorf("%s.toml makes %d points, the first %s, %v", p.Hash, len(points), hash, err)
		}
	}

	// A second job in its place is of its own points alone.
	if _, err := f.WriteSlurm(t.Context(), "p", "/", missing[:2], func() {}); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob("out/slurm/*.toml"); len(left) != 2 {
		t.Errorf("configurations %v, want two", left)
	}

	// An interrupt leaves no job.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.WriteSlurm(ctx, "p", "/", missing, func() {}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if _, err := os.Stat("out/slurm/job.sh"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an interrupted job is there: %v", err)
	}
}

// TestSlurmTasksShareThePoints: with fewer tasks than points, every point is
// run by one task.
func TestSlurmTasksShareThePoints(t *testing.T) {
	if _, err := exec.LookPath("awk"); err != nil {
		t.Skip("no awk")
	}
	t.Chdir(t.TempDir())
	var hashes []string
	for i := range 7 {
		hashes = append(hashes, strings.Repeat(string(rune('a'+i)), 3))
	}
	testkit.Rewrite(t, "points.txt", strings.Join(hashes, "\n")+"\n")
	testkit.Rewrite(t, "sparseserve", "#!/bin/sh\nbasename \"$2\" .toml >>ran\n")
	if err := os.Chmod("sparseserve", 0o755); err != nil {
		t.Fatal(err)
	}
	script := strings.NewReplacer("%[1]s", "x", "%[2]d", "3", "%[3]s", ".", "%[4]s", ".", "%[5]s", "./sparseserve", "%[6]s", ".", "%%", "%").Replace(slurmScript)
	for _, task := range []string{"1", "2", "3"} {
		cmd := exec.Command("sh", "-c", script)
		cmd.Env = append(os.Environ(), "SLURM_ARRAY_TASK_ID="+task)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	text, err := os.ReadFile("ran")
	ran := strings.Fields(string(text))
	slices.Sort(ran)
	if err != nil || !slices.Equal(ran, hashes) {
		t.Errorf("ran %v, want %v", ran, hashes)
	}
}
