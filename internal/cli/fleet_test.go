package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/run"
)

// Tables have a row for each number of replicas; what runs one server refuses a fleet in one line.
func TestFleets(t *testing.T) {
	record, err := filepath.Abs("../../traces/testdata/measured/llama2-7b_h100_codegen.csv.gz")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	simulator := run.NewSimulator().Run
	args := append([]string{"simulate", "--set", "workload.rate=0.5", "--set", "workload.requests=6",
		"--set", "fleet.replicas=[1,3]"}, synthetic...)
	status, out, errs := runHere(t.Context(), simulator, args...)
	if status != exitOK || !strings.Contains(out, " x3 ") ||
		!strings.Contains(out, "xN: a fleet of N replicas") {
		t.Errorf("exit status %d\n%s%s", status, out, errs)
	}
	for _, one := range [][]string{
		append([]string{"simulate", "--live=reference", "--set", "workload.rate=0.5", "--set",
			"workload.requests=2", "--set", "fleet.replicas=2"}, synthetic...),
		{"compare", record, "--set", "model=llama2-7b", "--set", "gpu=h100-80gb", "--set",
			"fleet.replicas=2"},
	} {
		status, _, errs := runHere(t.Context(), simulator, one...)
		if status != exitFailed || strings.Count(strings.TrimSpace(errs), "\n") != 0 ||
			!strings.Contains(strings.ReplaceAll(errs, " = ", "="), "fleet.replicas=2: ") {
			t.Errorf("%v: exit status %d\n%s", one, status, errs)
		}
	}
}
