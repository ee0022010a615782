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
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
)

// The same runs differ by nothing; others by what their summaries say.
func testMadeOnceMore(t *testing.T, dir string) {
	again := copied(t, dir)
	report, notes, err := Repeat(dir, again)
	if err != nil || len(report.Runs) != 5 || len(notes) > 0 {
		t.Fatalf("%v of %v, notes %q", err, report, notes)
	}
	kept, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	full := map[string]bool{}
	for _, r := range kept.Runs {
		full[filepath.Base(r.LiveFolder)] = r.Saturated
	}
	for i := range report.Runs {
		r := &report.Runs[i]
		if c, ok := r.Of("ttft_mean_s"); !ok || c.Live <= 0 || *c.Error != 0 || len(r.Misses()) > 0 {
			t.Errorf("%s: %+v, misses %v", r.Run, c, r.Misses())
		}
		if saturated, known := full[r.Run]; !known || r.Saturated != saturated {
			t.Errorf("%s: saturated %t, known %t", r.Run, r.Saturated, known)
		}
	}
	changeSummary(t, filepath.Join(again, liveFolder, report.Runs[0].Run),
		func(s *sim.Summary) { s.TBT.Mean *= 1.1 })
	if report, _, err = Repeat(dir, again); err != nil {
		t.Fatal(err)
	}
	c, _ := report.Runs[0].Of("tbt_mean_s")
	if m := report.Runs[0].Misses(); len(m) != 1 || m[0] != "tbt_mean_s" ||
		math.Abs(*c.Error-0.1) > 1e-9 || len(report.Runs[1].Misses()) > 0 {
		t.Errorf("misses %v, %+v", m, c)
	}
	// A run is saturated where either was.
	one := report.Runs[0].Run
	changeSummary(t, filepath.Join(again, liveFolder, one),
		func(s *sim.Summary) { s.Warnings = append(s.Warnings, warn.Warning{Kind: warn.UnstableQueue}) })
	if report, _, err = Repeat(dir, again); err != nil || !report.Runs[0].Saturated {
		t.Errorf("%v: %s is not saturated", err, one)
	}
}

// What differs by more than chance is no repeat, and what is left out is told.
func testNoRepeat(t *testing.T, dir string) {
	entries, err := os.ReadDir(filepath.Join(dir, liveFolder))
	if err != nil {
		t.Fatal(err)
	}
	one := entries[0].Name()
	for name, test := range map[string]struct {
		change     func(t *testing.T, again, folder string)
		want, note string
	}{
		"another seed": {edit(run.ConfigFile, "seed = 1\n", "seed = 2\n"),
			"its configuration is not that of ", ""},
		"another rate": {edit(run.ConfigFile, "rate = ", "rate = 1"),
			"its configuration is not that of ", ""},
		"other goals": {edit(run.ConfigFile, "delay_s = ", "delay_s = 1"),
			"its configuration is not that of ", ""},
		"another card": {edit(manifestFile, `"device": "`, `"device": "other `),
			" was made by a other ", ""},
		"another program": {edit(manifestFile, `"program": "`, `"program": "other-`), "",
			"another program made 1 of the 5 second runs"},
		"other requests": {func(t *testing.T, _, folder string) {
			changeSummary(t, folder, func(s *sim.Summary) { s.TTFT.Mean *= 1.01 })
		}, "the summary has", ""},
		"one is missing": {func(t *testing.T, _, folder string) { remove(t, folder) }, "",
			"runs that one folder alone has are left out: 1"},
		"nothing there": {func(t *testing.T, again, _ string) {
			remove(t, filepath.Join(again, liveFolder))
		}, "is no folder with live runs", ""},
		"nothing in it": {func(t *testing.T, again, _ string) {
			remove(t, filepath.Join(again, liveFolder))
			if err := os.Mkdir(filepath.Join(again, liveFolder), 0o755); err != nil {
				t.Fatal(err)
			}
		}, "have no live run in common", ""},
	} {
		t.Run(name, func(t *testing.T) {
			again := copied(t, dir)
			test.change(t, again, filepath.Join(again, liveFolder, one))
			_, notes, err := Repeat(dir, again)
			if test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) ||
				test.want == "" && err != nil {
				t.Errorf("error %v, want %q", err, test.want)
			}
			if !strings.Contains(strings.Join(notes, "\n"), test.note) {
				t.Errorf("notes %q, want %q", notes, test.note)
			}
		})
	}
}

func copied(t *testing.T, dir string) string {
	t.Helper()
	again := t.TempDir()
	if err := os.CopyFS(again, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return again
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

// edit replaces text in a file of a run's folder.
func edit(file, from, to string) func(t *testing.T, again, folder string) {
	return func(t *testing.T, _, folder string) {
		t.Helper()
		path := filepath.Join(folder, file)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(text, []byte(from)) {
			t.Fatalf("%s has no %q", path, from)
		}
		changed := bytes.Replace(text, []byte(from), []byte(to), 1)
		if err := os.WriteFile(path, changed, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func changeSummary(t *testing.T, folder string, change func(*sim.Summary)) {
	t.Helper()
	sum, err := run.ReadSummary(folder)
	if err != nil {
		t.Fatal(err)
	}
	change(&sum)
	text, err := json.Marshal(&sum)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, run.SummaryFile), text, 0o644); err != nil {
		t.Fatal(err)
	}
}
