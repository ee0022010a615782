package cli

import (
	"encoding/json"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/diff"
	"github.com/sparseserve/sparseserve/experiments/testkit"
)

func TestDiff(t *testing.T) {
	t.Chdir(t.TempDir())
	for out, rate := range map[string]string{"a": "[0.1,0.15,0.2]", "b": "[0.1,0.15]"} {
		preset := map[string]string{"a": "vllm", "b": "vllm-s"}[out]
		status, _, errs := runHere(t.Context(), pretend, "simulate", "--out", out,
			"--set", "seeds=[1,2,3]", "--set", "workload.rate="+rate, "--set", "system.preset="+preset)
		if status != 0 {
			t.Fatal(errs)
		}
	}
	status, out, errs := runHere(t.Context(), nil, "diff", "a", "b")
	if status != 0 || errs != "" {
		t.Errorf("status %d, %s", status, errs)
	}
	testkit.Golden(t, "diff.txt", out)
	status, out, errs = runHere(t.Context(), nil, "diff", "--json", "a", "b")
	var report diff.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil || status != 0 || errs != "" || len(report.OnlyA) != 1 {
		t.Errorf("%v, status %d, %s\n%s", err, status, errs, out)
	}
}
