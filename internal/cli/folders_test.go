package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// A sweep's tables never lose the runs of another sweep: other settings have another folder, a
// larger sweep goes on in the same one, and only --force replaces.
func TestSweepFolderIsSafe(t *testing.T) {
	t.Chdir(t.TempDir())
	const head = "[workload]\nrequests = 9\n[system]\npreset = " +
		"\"vllm\"\n[[axis]]\ngrid.workload.rate = "
	rows := func(dir string) int {
		text, _ := os.ReadFile(filepath.Join(dir, "summary.csv"))
		return strings.Count(string(text), "\n") - 1
	}
	step := func(file string, want int, dir string, n int, args ...string) (out, errs string) {
		t.Helper()
		writeFile(t, "s.toml", head+file)
		status, out, errs := runHere(t.Context(), pretend,
			append([]string{"simulate", "s.toml"}, args...)...)
		if status != want || rows(dir) != n {
			t.Errorf("%s %v: status %d, %d rows in %s, stderr %q", file, args, status, rows(dir), dir, errs)
		}
		return out, errs
	}
	step("[0.1, 0.2]", exitOK, "out/s", 2)
	step("[0.1, 0.2]", exitOK, "out/s-requests=5", 2, "--set", "workload.requests=5")
	writeFile(t, "out/s/ttft.png", "")
	writeFile(t, "out/s/pictures.csv", "part,picture\nchart,ttft\n")
	writeFile(t, "out/s/mine.png", "")
	if out, _ := step("[0.1, 0.2, 0.3]", exitOK, "out/s", 3); !strings.Contains(out,
		"2 of 3 runs finished before") {
		t.Errorf("a larger sweep: %s", out)
	}
	step("[0.1]", exitOK, "out/s-2", 1)
	if _, errs := step("[0.1]", exitFailed, "out/s", 3, "--out",
		"out/s"); !strings.Contains(errs, "--force") {
		t.Errorf("a smaller sweep: %s", errs)
	}
	step("[0.1]", exitOK, "out/s", 1, "--out", "out/s", "--force")
	for name, there := range map[string]bool{"ttft.png": false, "mine.png": true} {
		if _, err := os.Stat("out/s/" + name); (err == nil) != there {
			t.Errorf("%s after --force: %v", name, err)
		}
	}
	if status, _, errs := runHere(t.Context(), pretend, "simulate", "--set", "workload.requests=9",
		"--out", "sim"); status != exitOK {
		t.Fatal(errs)
	}
	if _, errs := step("[0.1]", exitFailed, "out/s", 1, "--out", "sim"); !strings.Contains(errs,
		"holds results of another configuration") {
		t.Errorf("into a simulation's folder: %s", errs)
	}
}

// Two sweeps with points in places of their own do not write to one folder at a time.
func TestSweepFolderIsLocked(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, "s.toml", sweepFile)
	inner := ""
	runner := func(ctx context.Context, p config.Point, sink run.Sink) (metrics.Summary, error) {
		if inner == "" {
			_, _, inner = runHere(ctx, pretend, "simulate", "s.toml", "--out", "here", "--points", "two")
		}
		return pretend(ctx, p, sink)
	}
	status, _, errs := runHere(t.Context(), runner, "simulate", "s.toml", "--out", "here", "--points",
		"one", "--workers", "1")
	if status != exitOK || !strings.Contains(inner, "another process is writing here") {
		t.Errorf("status %d %q, the second %q", status, errs, inner)
	}
}

// A comparison with other settings, or of another record, has another folder.
func TestCompareFolderIsSafe(t *testing.T) {
	t.Chdir(t.TempDir())
	const record = "arrival_s,prompt_tokens,output_tokens,ttft_s,e2e_s\n0,5,3,9,10\n1,5,3,0.1,0.12\n"
	writeFile(t, "r.csv", record)
	writeFile(t, "c.toml", "model = \"llama2-7b\"\ngpu = \"h100-80gb\"\n")
	for _, c := range []struct {
		args   string
		dir    string
		status int
		errs   string
	}{
		{"", "out/compare/r", exitOK, ""},
		{"", "out/compare/r", exitOK, ""},
		{"--skip 0.5", "out/compare/r-2", exitOK, ""},
		{"--set system.max_requests=8", "out/compare/r-max_requests=8", exitOK, ""},
		{"--prefix-hit 0 --out out/compare/r", "", exitFailed, "another question"},
		{"--prefix-hit 0 --out out/compare/r --force", "out/compare/r", exitOK, ""},
		{"--prefix-hit 0 --out out/compare/r", "out/compare/r", exitOK, ""},
	} {
		os.Remove(filepath.Join(c.dir, "compare.json"))
		status, _, errs := runHere(t.Context(), steadyServer,
			append([]string{"compare", "r.csv", "c.toml"}, strings.Fields(c.args)...)...)
		_, err := os.Stat(filepath.Join(c.dir, "compare.json"))
		if status != c.status || !strings.Contains(errs, c.errs) || err != nil && c.dir != "" {
			t.Errorf("%s: status %d, stderr %q, %v", c.args, status, errs, err)
		}
	}
	writeFile(t, "r.csv", record+"2,7,3,0.1,0.12\n")
	if status, _, errs := runHere(t.Context(), steadyServer, "compare", "r.csv", "c.toml", "--out",
		"out/compare/r-2"); status != exitFailed ||
		!strings.Contains(errs, "another question") {
		t.Errorf("another record: status %d, stderr %q", status, errs)
	}
}
