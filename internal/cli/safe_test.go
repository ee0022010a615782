package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/run"
)

// No file that a command reads or that a result folder keeps is replaced, whatever its name for
// output is.
func TestOutputsAreNoInputs(t *testing.T) {
	t.Chdir(t.TempDir())
	status, _, errs := runHere(t.Context(), run.NewSimulator().Run, "simulate", "--set",
		"workload.requests=2", "--set", "workload.rate=1", "--set", "system.preset=vllm", "--out", "R")
	if status != exitOK {
		t.Fatal(errs)
	}
	writeFile(t, "t.csv", "arrived_s,prompt_tokens,output_tokens\n0,40,2\n")
	samples, err := os.ReadFile("../../hw/kernels/hopper.csv.gz")
	if err != nil {
		samples = []byte("probe\n")
	}
	writeFile(t, "s.csv", string(samples))
	if err := errors.Join(os.Link("R/summary.json", "hard.html"), os.Symlink("s.csv", "s.toml"),
		os.Symlink("R/summary.csv", "soft.html"), os.Link("t.csv", "t2.csv"),
		os.Link("t.csv", "hard.csv")); err != nil {
		t.Fatal(err)
	}
	before := textsBelow(t, ".")
	for _, args := range [][]string{
		{"report", "R", "--out", "R/summary.json"}, {"report", "R", "--out", "hard.html"},
		{"report", "R", "--out", "soft.html"}, {"report", "R", "--out", "R/../R/config.toml"},
		{"report", "R", "--out", "R"}, {"report", "R", "--out", "/dev/full"},
		{"trace", "convert", "t.csv", "--out", "./t.csv"},
		{"trace", "convert", "t.csv", "--out", "t2.csv"},
		{"calibrate", "refit", "s.csv", "--out", "s.csv"},
		{"calibrate", "refit", "s.csv", "--out", "s.toml"},
		{"calibrate", "drive", "R", "--out", "R/summary.json"},
		{"calibrate", "drive", "R", "--out", "/dev/full"},
	} {
		status, _, errs := runHere(t.Context(), run.NewSimulator().Run, args...)
		if status != exitFailed || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: status %d, stderr %q", args, status, errs)
		}
	}
	after := textsBelow(t, ".")
	for path, text := range before {
		if after[path] != text {
			t.Errorf("%s has changed", path)
		}
	}
}

// A folder for results that holds an input, where results may take its place, is refused before
// anything runs; figures do not replace a table that they have not made.
func TestResultsReplaceNoInput(t *testing.T) {
	t.Chdir(t.TempDir())
	trace := "arrived_s,prompt_tokens,output_tokens\n0,40,2\n1,40,2\n"
	if err := os.MkdirAll("runs/x", 0o755); err != nil {
		t.Fatal(err)
	}
	record := "arrival_s,prompt_tokens,output_tokens,ttft_s,e2e_s\n0,40,2,0.1,0.2\n1,40,2,0.1,0.2\n"
	for name, text := range map[string]string{"pictures.csv": trace, "summary.csv": trace,
		"compare.csv": record, "whatif.csv": trace, "runs/x/t.csv": trace, "config.toml": "seed = 1\n",
		"description.json": trace, "plan.csv": "seed = 1\n"} {
		writeFile(t, name, text)
	}
	small := func(command string, more ...string) []string {
		return append([]string{command, "--set", "workload.requests=2", "--set", "workload.rate=1",
			"--set", "system.preset=vllm", "--out", "."}, more...)
	}
	for _, args := range [][]string{
		small("simulate", "--set", "workload.trace=pictures.csv"),
		small("simulate", "--set", "workload.trace=./runs/x/t.csv", "--force"),
		small("simulate", "config.toml", "--force"),
		small("simulate", "default", "--set", "workload.trace=summary.csv"),
		small("goodput", "--set", "workload.trace=pictures.csv"), small("goodput", "plan.csv"),
		small("whatif", "--set", "workload.trace=whatif.csv"),
		{"compare", "compare.csv", "--set", "model=llama3-8b", "--set", "gpu=h200", "--out", "."},
		{"trace", "describe", "description.json", "--format", "csv", "--out", "."},
		{"validate", "config.toml", "--out", ".", "--live=reference"},
	} {
		before := textsBelow(t, ".")
		status, _, errs := runHere(t.Context(), pretend, args...)
		if status != exitFailed || !strings.Contains(errs, "choose another folder") ||
			strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: status %d, stderr %q", args, status, errs)
		}
		if after := textsBelow(t, "."); !maps.Equal(before, after) {
			t.Errorf("%v: files have changed", args)
		}
	}
	simulate := []string{"simulate", "--set", "workload.requests=2", "--set", "workload.rate=1",
		"--set",
		"system.preset=vllm", "--out", "R"}
	for _, args := range [][]string{simulate, {"report", "R", "--format", "png"},
		{"simulate", "R/config.toml", "--out", "R"}} { // again from its own configuration
		if status, _, errs := runHere(t.Context(), pretend, args...); status != exitOK {
			t.Fatalf("%v: %s", args, errs)
		}
	}
	before := textsBelow(t, ".")
	status, _, errs := runHere(t.Context(), pretend, "report", "R", "--format", "png", "--out", ".")
	if status != exitFailed || !strings.Contains(errs, "pictures.csv: ") {
		t.Errorf("pictures: status %d, stderr %q", status, errs)
	}
	if after := textsBelow(t, "."); !maps.Equal(before, after) {
		t.Error("pictures: files have changed")
	}
}

func textsBelow(t *testing.T, dir string) map[string]string {
	t.Helper()
	texts := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		texts[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// A file without an end in the place of any other is an error at once.
func TestEndlessFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := errors.Join(os.Mkdir("R", 0o755), os.Symlink("/dev/zero", "R/summary.json"),
		os.Mkdir("W", 0o755), os.Symlink("/dev/zero", "W/config.json")); err != nil {
		t.Fatal(err)
	}
	commands := [][]string{{"report", "R"}, {"report", "R", "--format", "png"}, {"compare", "R", "R"},
		{"calibrate", "refit", "/dev/zero"}, {"trace", "describe", "/dev/zero"},
		{"compare", "/dev/zero"}, {"simulate", "/dev/zero"}, {"list", "patterns", "/dev/zero"},
		{"paper", "patterns", "--weights", "W"}}
	for _, key := range []string{"model", "gpu", "workload.trace", "system.engine",
		"selection.recording", "prefill.pattern"} {
		commands = append(commands, []string{"simulate", "--set", "system.preset=sparseserve", "--set",
			"prefill.attention=minference", "--set", key + "=/dev/zero"})
	}
	for _, args := range commands {
		status, _, errs := runHere(t.Context(), run.NewSimulator().Run, args...)
		if status != exitFailed || !strings.Contains(errs, "/dev/zero: ") &&
			!strings.Contains(errs, "R/summary.json: ") && !strings.Contains(errs, "W/config.json: ") {
			t.Errorf("%v: status %d, stderr %q", args, status, errs)
		}
	}
}

// Names of others reach a terminal escaped, and make no line of their own.
func TestNamesDoNotControlTheTerminal(t *testing.T) {
	t.Chdir(t.TempDir())
	name := "\x1b[2J\x07\u009b31m\u202eevil\nsparseserve: forged"
	writeFile(t, name, "no trace")
	writeFile(t, "t.csv", "arrived_s,prompt_tokens,output_tokens,set\n0,40,2,a\x1b[31mb\u009bc\n")
	for _, args := range [][]string{{"trace", "describe", name}, {"report", name}, {"simulate", name},
		{"report", name, "--format", "png"}, {"compare", name, name}, {"trace", "describe", "t.csv"},
		{"trace", "describe", "t.csv", "--json"}, {"simulate", "--set", "model=" + name},
		{"simulate", "--set", "gpu=" + name}, {"simulate", "--set", "workload.trace=" + name},
		{"plan", "default", "--set", "plan.prices_file=" + name}, {name}, {"list", "models", name}} {
		_, out, errs := runHere(t.Context(), run.NewSimulator().Run, args...)
		if strings.ContainsAny(out+errs, "\x1b\x07\u009b\u202e") ||
			strings.Contains(errs, "\nsparseserve: forged") {
			t.Errorf("%q: stdout %q, stderr %q", args, out, errs)
		}
	}
	if _, out, _ := runHere(t.Context(), nil, "trace", "describe", "t.csv"); !strings.Contains(out,
		`a\u001b[31mb\u009bc prompt`) {
		t.Errorf("the name of the set is not there: %q", out)
	}
	if _, out, _ := runHere(t.Context(), nil, "trace", "convert", "t.csv", "--out",
		"-"); !strings.Contains(out, "a\x1b[31mb\u009bc") {
		t.Errorf("data are changed: %q", out)
	}
}

// More values than can be run are refused before they are made.
func TestHugeSteps(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, args := range [][]string{{"--vary", "link=1..2", "--steps", "1000000"},
		{"--vary", "link=1..2", "--steps", "9223372036854775807"},
		{"--heat", "link,hbm", "--steps", "2000"}} {
		status, _, errs := runHere(t.Context(), nil, append([]string{"whatif"}, args...)...)
		if status != exitFailed || !strings.Contains(errs, "100000") {
			t.Errorf("%v: status %d, stderr %q", args, status, errs)
		}
	}
}

// countdown is a context that ends at its n-th look.
type countdown struct {
	context.Context
	left atomic.Int64
}

func (c *countdown) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// A sweep that is interrupted while its points are read, named, looked up or written ends there.
func TestInterruptedReading(t *testing.T) {
	t.Chdir(t.TempDir())
	sweep := func(name string, rates int) {
		text := "[system]\npreset = \"vllm\"\n[[axis]]\ngrid.workload.rate = ["
		for i := range rates {
			text += fmt.Sprintf("%g, ", float64(i+1)/1000)
		}
		writeFile(t, name, text+"]\n")
	}
	sweep("s.toml", 20)
	for looks := range int64(60) { // 20 a pass
		ctx := &countdown{Context: context.Background()}
		ctx.left.Store(looks)
		status, _, errs := runHere(ctx, pretend, "simulate", "s.toml", "--out", "o")
		if _, err := os.Stat("o"); looks < 40 && err == nil {
			t.Fatalf("after %d looks there is a folder", looks)
		}
		if _, err := os.Stat("o/summary.json"); err == nil || status != Interrupted ||
			!strings.HasPrefix(errs, "sparseserve: interrupted") {
			t.Fatalf("after %d looks: status %d, stderr %q, %v", looks, status, errs, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, command := range []string{"simulate", "goodput"} {
		status, _, errs := runHere(ctx, pretend, command, "s.toml")
		if errs != "sparseserve: interrupted\n" || status != Interrupted {
			t.Errorf("%s: status %d, stderr %q", command, status, errs)
		}
	}
}

// What draws and searches looks at its context, too.
func TestInterruptedDrawing(t *testing.T) {
	t.Chdir(t.TempDir())
	status, _, errs := runHere(t.Context(), run.NewSimulator().Run, "simulate", "--set",
		"workload.requests=2", "--set", "workload.rate=1", "--set", "system.preset=vllm", "--out", "R")
	if status != exitOK {
		t.Fatal(errs)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{{"report", "R", "--format", "png", "--out", "F"}} {
		if status, _, errs := runHere(ctx, pretend, args...); status != Interrupted ||
			errs != "sparseserve: interrupted\n" {
			t.Errorf("%v: status %d, stderr %q", args, status, errs)
		}
	}
	if drawn, _ := filepath.Glob("F/*.png"); drawn != nil {
		t.Errorf("drawn: %v", drawn)
	}
}
