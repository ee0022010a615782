package validate

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/run"
)

// The same runs differ by nothing; others by what their summaries and requests say.
func testMadeOnceMore(t *testing.T, dir string) {
	again := t.TempDir()
	if err := os.CopyFS(again, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	report, err := Repeat(dir, again)
	if err != nil || len(report.Runs) != 5 {
		t.Fatalf("%v of %v", err, report)
	}
	for i := range report.Runs {
		r := &report.Runs[i]
		if c, ok := r.Of("ttft_mean_s"); !ok || c.Live <= 0 || *c.Error != 0 || len(r.Misses()) > 0 {
			t.Errorf("%s: %+v, misses %v", r.Run, c, r.Misses())
		}
	}
	one := report.Runs[0].Run
	summary := filepath.Join(again, liveFolder, one, run.SummaryFile)
	text, err := os.ReadFile(summary)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := run.ReadSummary(filepath.Dir(summary))
	if err != nil {
		t.Fatal(err)
	}
	sum.TBT.Mean *= 1.06
	slower, err := json.Marshal(&sum)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(summary, slower, 0o644); err != nil {
		t.Fatal(err)
	}
	if report, err = Repeat(dir, again); err != nil {
		t.Fatal(err)
	}
	c, _ := report.Runs[0].Of("tbt_mean_s")
	if m := report.Runs[0].Misses(); len(m) != 1 || m[0] != "tbt_mean_s" ||
		math.Abs(*c.Error-0.06) > 1e-9 || len(report.Runs[1].Misses()) > 0 {
		t.Errorf("misses %v, %+v", m, c)
	}
	if err := os.WriteFile(summary, text, 0o644); err != nil {
		t.Fatal(err)
	}
	testNoRepeat(t, dir, again, one)
}

// Runs of another workload are no repeat, nor are folders without a run in common.
func testNoRepeat(t *testing.T, dir, again, one string) {
	t.Helper()
	set := filepath.Join(again, liveFolder, one, run.ConfigFile)
	text, err := os.ReadFile(set)
	if err != nil {
		t.Fatal(err)
	}
	other := bytes.Replace(text, []byte("seed = 1\n"), []byte("seed = 2\n"), 1)
	if err := os.WriteFile(set, other, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Repeat(dir, again); err == nil ||
		!strings.Contains(err.Error(), "its configuration is not that of ") {
		t.Errorf("another seed: %v", err)
	}
	if err := os.RemoveAll(filepath.Join(again, liveFolder)); err != nil {
		t.Fatal(err)
	}
	if _, err := Repeat(dir, again); err == nil || !strings.Contains(err.Error(), "no run in common") {
		t.Errorf("nothing there: %v", err)
	}
}
