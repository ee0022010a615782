package figures

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPlanGolden(t *testing.T) {
	files, err := DrawPlan(t.Context(), t.TempDir(), "testdata/plan")
	if err != nil || len(files) != 1 {
		t.Fatalf("drew %v, %v", files, err)
	}
	golden(t, "plan", files[0])
	golden(t, "plan", strings.TrimSuffix(files[0], ".png")+".csv")
}

// Plans of which nothing is known, of many candidates and of misses alone are drawn, too.
func TestOddPlans(t *testing.T) {
	const header = "candidate,outcome,replicas,gpus,usd_per_hour,headroom,nearest_limit," +
		"nearest_share,next_limit,next_share\n"
	meets := "x,meets,2,4,7.5,0.2,ttft,0.9,tbt,0.5\n"
	for name, c := range map[string]struct {
		rows    string
		files   int
		problem string
	}{
		"none":           {"", 0, "candidates.csv: no row"},
		"nothing known":  {"x,too large,,,,,,,,\n", 0, ""},
		"many":           {strings.Repeat(meets, 20), 1, ""},
		"misses":         {"x,misses,,,,,tbt,3,ttft,0.5\n", 1, ""},
		"dearer, one":    {meets + "y,dearer,,,9,,,,,\n", 1, ""},
		"not a number":   {"x,meets,2,4,much,,,,,\n", 0, `usd_per_hour = "much": want a number`},
		"no second one":  {"x,meets,1,1,2,,ttft,0.9,,\n", 1, ""},
		"price of plans": {"x,meets,1,1,0.01,-0,ttft,0,tbt,0\n", 1, ""},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, plannedFile), []byte(header+c.rows),
			0o600); err != nil {
			t.Fatal(err)
		}
		files, err := DrawPlan(t.Context(), dir, dir)
		if len(files) != c.files || (err == nil) != (c.problem == "") ||
			err != nil && !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%s: drew %v, %v; want %d, %q", name, files, err, c.files, c.problem)
		}
		if !IsPlan(dir) || IsPlan(filepath.Join(dir, "none")) {
			t.Errorf("%s: a plan is not told from others", name)
		}
	}
}
