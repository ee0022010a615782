package figures

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestComparisonGolden(t *testing.T) {
	dir := t.TempDir()
	files, err := DrawComparison(t.Context(), dir, "testdata/compare")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 2 {
		t.Fatalf("drew %v", files)
	}
	for _, f := range files {
		golden(t, "compare", f)
		golden(t, "compare", strings.TrimSuffix(f, ".png")+".csv")
	}
}

// Small and odd comparisons are drawn, too.
func TestOddComparisons(t *testing.T) {
	const header = "id,stage,arrival_s,prompt_tokens,output_tokens,measured_ttft_s," +
		"simulated_ttft_s,measured_tpot_s,simulated_tpot_s,measured_e2e_s,simulated_e2e_s\n"
	for name, c := range map[string]struct {
		rows, problem string
	}{
		"one request":    {"1,a,0,5,5,0.1,0.2,0.01,0.02,1,1\n", ""},
		"all at once":    {strings.Repeat("1,a,0,5,5,0.1,0.1,0.01,0.01,1,1\n", 60), ""},
		"single tokens":  {"1,a,0,5,1,0.1,0.2,,,1,1\n2,a,3,5,1,0.1,0.2,,,1,1\n", ""},
		"no request":     {"", "requests.csv: no row"},
		"not a number":   {"1,a,0,5,5,x,0.2,0.01,0.02,1,1\n", `measured_ttft_s = "x": want a number`},
		"not an arrival": {"1,a,?,5,5,1,0.2,0.01,0.02,1,1\n", `arrival_s = "?"`},
	} {
		dir := t.TempDir()
		for file, text := range map[string]string{
			"summary.json": `[{"name": "r", "system": "vllm", "model": "m", "gpu": "g"}]`,
			"requests.csv": header + c.rows,
		} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err := DrawComparison(t.Context(), dir, dir)
		if (err == nil) != (c.problem == "") || err != nil && !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%s: %v, want %q", name, err, c.problem)
		}
	}
	if _, err := DrawComparison(t.Context(), t.TempDir(), t.TempDir()); err == nil {
		t.Error("an empty folder is drawn")
	}
}

// A distribution rises from none to all of the requests, over their own values.
func TestCumulative(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(1e-3, 1e3), 1, 700).Draw(t, "values")
		c := cumulative("s", slices.Clone(values))
		first, last := c.points[0], c.points[len(c.points)-1]
		if first.mean != 0 || first.x != slices.Min(values) && len(values) <= shareSteps ||
			last.mean != 1 || last.x != slices.Max(values) {
			t.Fatalf("from %+v to %+v", first, last)
		}
		for i, q := range c.points[1:] {
			below := 0
			for _, v := range values {
				if v <= q.x {
					below++
				}
			}
			if q.x < c.points[i].x || q.mean <= c.points[i].mean ||
				q.mean > float64(below)/float64(len(values)) {
				t.Fatalf("share %v at %v, %d of %d values are no larger", q.mean, q.x, below, len(values))
			}
		}
	})
}
