package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/diff"
	"github.com/sparseserve/sparseserve/experiments/testkit"
)

func TestDiff(t *testing.T) {
	t.Chdir(t.TempDir())
	for out, rate := range map[string]string{"a": "[0.1,0.15,0.2]", "b": "[0.1,0.15]"} {
		preset := map[string]string{"a": "vllm", "b": "vllm-s"}[out]
		status, _, errs := runHere(t.Context(), pretend, "simulate", "--out", out,
			"--set", "seed=[1,2,3]", "--set", "workload.rate="+rate, "--set", "system.preset="+preset)
		if status != 0 {
			t.Fatal(errs)
		}
	}
	status, out, errs := runHere(t.Context(), nil, "compare", "a", "b")
	if status != 0 || errs != "" {
		t.Errorf("status %d, %s", status, errs)
	}
	testkit.Golden(t, "diff.txt", out)
	status, out, errs = runHere(t.Context(), nil, "compare", "--json", "a", "b")
	var report diff.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil || status != 0 || errs != "" ||
		len(report.OnlyA) != 1 {
		t.Errorf("%v, status %d, %s\n%s", err, status, errs, out)
	}
}

// Folders of two programs differ for that reason too, which is said.
func TestDiffOfPrograms(t *testing.T) {
	t.Chdir(t.TempDir())
	for dir, program := range map[string]string{"a": "one", "b": "two", "c": "one"} {
		var out, errs bytes.Buffer
		app := App{Stdout: &out, Stderr: &errs, Run: pretend, Version: program}
		args := []string{"simulate", "--set", "workload.rate=0.1", "--out", dir}
		if status := app.Main(t.Context(), args); status != exitOK {
			t.Fatal(errs.String())
		}
	}
	const said = "Made by different versions of the model: one, two.\n"
	if _, out, errs := runHere(t.Context(), nil, "compare", "a", "b"); !strings.Contains(out, said) {
		t.Errorf("%s%s", out, errs)
	}
	_, out, errs := runHere(t.Context(), nil, "compare", "a", "c")
	if strings.Contains(out, "different versions") {
		t.Errorf("%s%s", out, errs)
	}
}
