package diff_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/diff"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// folder writes a result folder with one run for each summary.
func folder(t *testing.T, config string, sums ...metrics.Summary) *diff.Folder {
	t.Helper()
	dir := t.TempDir()
	text, err := json.Marshal(sums)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"summary.json": string(text), "config.toml": config} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f, err := diff.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// runs returns runs of one system and card with seeds 1, 2, .., and these mean TTFTs.
func runs(system, gpu string, rate float64, ttft ...float64) (sums []metrics.Summary) {
	for i, x := range ttft {
		sums = append(sums, metrics.Summary{System: system, GPU: gpu, Rate: rate, Seed: uint64(i + 1),
			TTFT: metrics.Stats{Mean: x}})
	}
	return sums
}

func rowOf(t *testing.T, r *diff.Report, point string) *diff.Row {
	t.Helper()
	for i := range r.Rows {
		if r.Rows[i].Point == point && r.Rows[i].Metric == "ttft_mean_s" {
			return &r.Rows[i]
		}
	}
	t.Fatalf("no %s among %+v", point, r.Rows)
	return nil
}

// Hits in the prefix cache are compared where one side has a cache, which another lacks or not.
func TestComparePrefixHits(t *testing.T) {
	off, on := runs("s", "x", 1, 10), runs("s", "x", 1, 10)
	on[0].PrefixCache = &metrics.PrefixStats{HitShare: 0.25}
	for _, c := range []struct {
		a, b []metrics.Summary
		want []float64
	}{{off, on, []float64{0, 0.25}}, {on, on, []float64{0.25, 0.25}}, {off, off, nil}} {
		report, err := diff.Compare(folder(t, "", c.a...), folder(t, "", c.b...))
		if err != nil {
			t.Fatal(err)
		}
		var got []float64
		for _, r := range report.Rows {
			if r.Metric == "prefix_hit_share" {
				got = []float64{r.A, r.B}
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v, want %v", got, c.want)
		}
	}
}

func TestCompare(t *testing.T) {
	a := folder(t, "gpu = 'x'\n[workload]\nrequests = 5",
		append(runs("s", "x", 1, 10, 20, 30), runs("s", "x", 2, 10, 20, 30, 40)...)...)
	b := folder(t, "gpu = 'y'\n[workload]\nrequests = 5",
		append(runs("s", "y", 1, 11, 22, 33),
			append(runs("s", "y", 2, 90, 20, 30), runs("s", "y", 3, 1)...)...)...)
	r, err := diff.Compare(a, b)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(r.Settings); got != "[{gpu x y}]" {
		t.Errorf("settings %s", got)
	}
	// Differences 1, 2, 3: mean 2, deviation 1, t = 4.3027 with two degrees of freedom.
	row := rowOf(t, r, "rate=1")
	if half := 4.302653 / math.Sqrt(3); row.Seeds != 3 || row.A != 20 || row.B != 22 ||
		math.Abs(*row.Low-(2-half)) > 1e-5 || math.Abs(*row.High-(2+half)) > 1e-5 {
		t.Errorf("%+v, %g to %g", row, *row.Low, *row.High)
	}
	if row.Differs() {
		t.Error("an interval with 0 in it is taken for a difference")
	}
	if row = rowOf(t, r, "rate=2"); row.Seeds != 3 || row.A != 20 {
		t.Errorf("%+v, want the three seeds that both have", row)
	}
	if fmt.Sprint(r.OnlyA, r.OnlyB) != "[] [rate=3]" {
		t.Errorf("only %v and %v", r.OnlyA, r.OnlyB)
	}
	same, err := diff.Compare(a, a)
	if err != nil {
		t.Fatal(err)
	}
	for i := range same.Rows {
		if same.Rows[i].Differs() {
			t.Errorf("a folder differs from itself: %+v", same.Rows[i])
		}
	}
}

// TestCompareSystems: systems are matched by name where a folder has several, and one with one.
func TestCompareSystems(t *testing.T) {
	one, other := runs("vllm", "x", 1, 10, 11), runs("new", "x", 1, 5, 6)
	a, b := folder(t, "", one...), folder(t, "", other...)
	r, err := diff.Compare(a, b)
	if err != nil {
		t.Fatal(err)
	}
	if row := rowOf(t, r, "all runs"); !row.Differs() || math.Abs(row.Change()+5/10.5) > 1e-12 {
		t.Errorf("%+v", row)
	}
	both := folder(t, "", append(one, other...)...)
	if r, err = diff.Compare(b, both); err != nil || rowOf(t, r, "new").Differs() ||
		fmt.Sprint(r.OnlyB) != "[vllm]" {
		t.Errorf("%v, %+v", err, r)
	}
}

func TestCompareSaysWhatIsWrong(t *testing.T) {
	a := folder(t, "", append(runs("s", "x", 1, 10), runs("s", "x", 2, 10)...)...)
	b := folder(t, "", append(runs("s", "x", 3, 10), runs("s", "x", 4, 10)...)...)
	if _, err := diff.Compare(a, b); err == nil ||
		!strings.Contains(err.Error(), "no point and seed in common: rate=1; rate=3") {
		t.Errorf("error %v", err)
	}
	if _, err := diff.Read(t.TempDir()); err == nil ||
		!strings.Contains(err.Error(), "no finished result folder") {
		t.Errorf("error %v", err)
	}
}
