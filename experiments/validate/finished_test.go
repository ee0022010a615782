package validate

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/cuda/live"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/hw"
)

// A finished validation of the tiny model, and what must hold of it.
func TestValidation(t *testing.T) {
	finished := t.TempDir()
	var runs int
	report, notes, err := tinyValidation(t, finished, &runs, 0).Do(t.Context())
	if err != nil || len(notes) > 0 || runs != 5 {
		t.Fatalf("%d live runs, notes %q, error %v", runs, notes, err)
	}
	checkTiny(t, report)
	for name, test := range map[string]func(t *testing.T, dir string){
		"files are those documented":         testFilesAreDocumented,
		"all is kept":                        testAllIsKept,
		"the table follows from the files":   testTableFollowsFromFiles,
		"another program takes what is kept": testKeptOfAnotherProgram,
		"another engine":                     testAnotherEngine,
		"another configuration":              testAnotherConfiguration,
		"no machine":                         testNoMachine,
		"a damaged run is made again":        testDamagedRunIsMadeAgain,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(finished)); err != nil {
				t.Fatal(err)
			}
			test(t, dir)
		})
	}
}

// testFilesAreDocumented holds the files of each run against what Validation's comment names.
func testFilesAreDocumented(t *testing.T, dir string) {
	source, err := os.ReadFile("validation.go")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^//\tlive/KEY/ +(.*)$`).FindSubmatch(source)
	if m == nil {
		t.Fatal("the comment has no line of live/KEY/")
	}
	want := strings.Split(string(m[1]), ", ")
	runs, err := filepath.Glob(filepath.Join(dir, liveFolder, "*", run.ConfigFile))
	if err != nil || len(runs) == 0 {
		t.Fatalf("no live runs, %v", err)
	}
	for _, path := range runs {
		entries, err := os.ReadDir(filepath.Dir(path))
		var got []string
		for _, e := range entries {
			got = append(got, e.Name())
		}
		if slices.Sort(want); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s has %v, documented are %v", filepath.Dir(path), got, want)
		}
	}
}

// laterValidation takes what is kept, with another program and without a machine.
func laterValidation(t *testing.T, dir string) *Validation {
	t.Helper()
	var runs int
	v := tinyValidation(t, dir, &runs, 0)
	v.LiveProgram, v.Program, v.Kept = "later", "later", true
	v.Live.(*run.Live).On = func(func(live.Machine) error) error {
		return errors.New("no machine here")
	}
	return v
}

// A live run that fails is named, and the others are kept. The same command makes the one that
// is missing, and removes what a killed process left.
func TestFailedLiveRun(t *testing.T) {
	dir := t.TempDir()
	var runs int
	_, _, err := tinyValidation(t, dir, &runs, 2).Do(t.Context())
	want := "live run of vllm-s-4-s1: vllm-s-4-s1: out of order\n4 of 5 live runs are kept in "
	if err == nil || !strings.HasPrefix(err.Error(), want) || runs != 5 {
		t.Fatalf("%d live runs, error %v", runs, err)
	}
	left := filepath.Join(dir, liveFolder, ".0123.tmp")
	if err := os.Mkdir(left, 0o755); err != nil {
		t.Fatal(err)
	}
	report, notes, err := tinyValidation(t, dir, &runs, 0).Do(t.Context())
	if err != nil || len(notes) > 0 || runs != 1 {
		t.Fatalf("%d live runs, notes %q, error %v", runs, notes, err)
	}
	checkTiny(t, report)
	if _, err := os.Stat(left); err == nil {
		t.Error("what a killed process left is still there")
	}
}

func testAllIsKept(t *testing.T, dir string) {
	want := testkit.Tree(t, dir)
	var runs int
	if _, _, err := tinyValidation(t, dir, &runs, 0).Do(t.Context()); err != nil || runs != 0 {
		t.Errorf("%d live runs, error %v", runs, err)
	}
	testkit.SameTree(t, testkit.Tree(t, dir), want)
}

func testTableFollowsFromFiles(t *testing.T, dir string) {
	want := testkit.Tree(t, dir)
	for _, name := range []string{validationJSON, validationCSV} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Recompute(dir); err != nil {
		t.Fatal(err)
	}
	testkit.SameTree(t, testkit.Tree(t, dir), want)
}

func testKeptOfAnotherProgram(t *testing.T, dir string) {
	want := testkit.Tree(t, dir)
	report, _, err := laterValidation(t, dir).Do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	checkTiny(t, report)
	got := testkit.Tree(t, dir)
	for _, name := range []string{validationJSON, validationCSV} {
		if got[name] != want[name] {
			t.Errorf("%s differs with live runs of another program", name)
		}
	}
}

// What is live is compared with any engine's costs.
func testAnotherEngine(t *testing.T, dir string) {
	engine, err := hw.LoadEngine("sparseserve-live")
	if err != nil {
		t.Fatal(err)
	}
	engine.Host.Step.Value *= 100
	path := filepath.Join(t.TempDir(), "mine.toml")
	if err := engine.Write(path, "a slow host"); err != nil {
		t.Fatal(err)
	}
	v := laterValidation(t, dir)
	if v.Sweep, err = config.LoadSweep(t.Context(), "../validate-tiny.toml", []string{
		`model="../testdata/tiny"`,
		"workload.requests=3", "system.engine=" + path}); err != nil {
		t.Fatal(err)
	}
	want := testkit.Tree(t, dir)
	if _, _, err := v.Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := testkit.Tree(t, dir); got[validationCSV] == want[validationCSV] {
		t.Error("figures are the same with a slow host")
	}
}

func testAnotherConfiguration(t *testing.T, dir string) {
	v := laterValidation(t, dir)
	var err error
	v.Sweep, err = config.LoadSweep(t.Context(), "../validate-tiny.toml",
		[]string{`model="../testdata/tiny"`, "workload.requests=4"})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := v.Do(t.Context()); err == nil || !strings.Contains(err.Error(), "are not kept") {
		t.Errorf("runs of another configuration: %v", err)
	}
}

func testNoMachine(t *testing.T, dir string) {
	v := laterValidation(t, dir)
	v.Kept = false
	if _, _, err := v.Do(t.Context()); err == nil || err.Error() != "no machine here" {
		t.Errorf("without a machine: %v", err)
	}
}

func testDamagedRunIsMadeAgain(t *testing.T, dir string) {
	tables, err := filepath.Glob(filepath.Join(dir, liveFolder, "*", run.RequestsCSV+".gz"))
	if err != nil || len(tables) != 5 {
		t.Fatalf("%d tables, %v", len(tables), err)
	}
	testkit.Rewrite(t, tables[0], "x")
	if _, err := Recompute(dir); err == nil || !strings.Contains(err.Error(), "requests.csv.gz") {
		t.Errorf("from a damaged table: %v", err)
	}
	var runs int
	_, notes, err := tinyValidation(t, dir, &runs, 0).Do(t.Context())
	if err != nil || runs != 1 || len(notes) != 1 ||
		!strings.Contains(notes[0], "requests.csv.gz") {
		t.Errorf("%d live runs, notes %q, error %v", runs, notes, err)
	}
}
