package cli

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/run"
)

// pipes are left open, so that no other has the number of one.
var pipes []*os.File

// pipeWith returns the reading end of a pipe that holds text.
func pipeWith(t *testing.T, text []byte) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	w.Close()
	pipes = append(pipes, r)
	return r
}

// What a shell pipes in, packed, is served as the file is.
func TestTraceFromAPipe(t *testing.T) {
	trace, err := filepath.Abs("../../examples/trace.csv")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write(text)
	z.Close()
	simulator := run.NewSimulator().Run
	t.Chdir(t.TempDir())
	requests := func(trace, out string) string {
		status, _, errs := runHere(t.Context(), simulator, "simulate", "--set", "model=llama3.1-8b",
			"--set", "gpu=h100-80gb",
			"--set", "system.preset=[vllm-0.15,vllm-s]", "--set", "seed=[1,2]", "--set", "workload.trace="+
				trace, "--out", out)
		if status != 0 {
			t.Fatalf("%s: %s", trace, errs)
		}
		index, err := run.ReadIndex(out)
		if err != nil || len(index.Runs) != 4 {
			t.Fatalf("%s: %d runs, want 4 (%v)", trace, len(index.Runs), err)
		}
		var all strings.Builder
		for _, r := range index.Runs {
			fmt.Fprintf(&all, "%s\n%s", r.Label, runFile(t, out, r.Label, run.RequestsCSV))
		}
		return all.String()
	}
	want := requests(trace, "file")
	pipe := pipeWith(t, packed.Bytes())
	if got := requests(fmt.Sprintf("/dev/fd/%d", pipe.Fd()), "pipe"); got != want {
		t.Error("requests of the pipe are not those of the file")
	}
	stdin := os.Stdin
	defer func() { os.Stdin = stdin }()
	os.Stdin = pipeWith(t, packed.Bytes())
	if got := requests("-", "stdin"); got != want {
		t.Error("requests of standard input are not those of the file")
	}
	os.Stdin = pipeWith(t, packed.Bytes())
	if status, out, errs := runHere(t.Context(), nil, "trace", "describe", "-"); status != 0 ||
		!strings.HasPrefix(out, "standard input: csv, 60 requests") {
		t.Errorf("trace describe -: status %d, %q %q", status, out, errs)
	}
	os.Stdin = pipeWith(t, packed.Bytes())
	if status, out, errs := runHere(t.Context(), nil, "trace", "convert", "-", "--out",
		"-"); status != 0 || strings.Count(out, "\n") != 61 {
		t.Errorf("trace convert -: status %d, %d lines, %q", status, strings.Count(out, "\n"), errs)
	}
	os.Stdin = pipeWith(t, nil)
	if status, _, errs := runHere(t.Context(), nil, "trace", "describe", "-"); status != 1 ||
		errs != "sparseserve: standard input: empty; nothing was written to it\n" {
		t.Errorf("nothing piped in: status %d, %q", status, errs)
	}
}

// A record from standard input is compared as the file is.
func TestRecordFromAPipe(t *testing.T) {
	text, err := os.ReadFile(measuredRun)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	args := []string{"--set", "model=llama2-7b", "--set", "gpu=h100-80gb", "--json"}
	_, want, _ := runHere(t.Context(), steadyServer,
		append([]string{"compare", measuredRun}, args...)...)
	want = strings.ReplaceAll(want, recordName(measuredRun), "stdin")
	stdin := os.Stdin
	defer func() { os.Stdin = stdin }()
	if len(text) > 60_000 {
		t.Fatalf("the record has %d bytes, more than a pipe holds", len(text))
	}
	os.Stdin = pipeWith(t, text)
	status, got, errs := runHere(t.Context(), steadyServer,
		append([]string{"compare", "-"}, args...)...)
	if status != 0 || got != want || got == "" {
		t.Errorf("status %d, %s\n%s, want\n%s", status, errs, got, want)
	}
	if found, err := filepath.Glob("out/compare/stdin-*/trace.csv"); len(found) != 1 {
		t.Error(found, err)
	}
}
