package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sparseserve/experiments/config"
	"sparseserve/experiments/testkit"
	"sparseserve/sim"
)

const smallSweep = `seeds = [1, 2]
[workload]
requests = 3
rate = [0.1, 0.2]
[system]
preset = ["vllm", "sparseserve"]
[[axis]]
grid.system.window = [4, 8]
`

// runSweep runs a sweep into dir and returns the results, what Do says, and
// how many points ran.
func runSweep(t *testing.T, dir string, s *config.Sweep, workers int, run Runner) (results []Result, notes []string, ran int, err error) {
	t.Helper()
	f, err := OpenSweepFolder(dir, "", "test", s)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var n atomic.Int32
	counted := func(ctx context.Context, p config.Point, sink Sink) (sim.Summary, error) {
		n.Add(1)
		return run(ctx, p, sink)
	}
	results, notes, err = f.Store.Do(t.Context(), Grid{Run: counted, Workers: workers}, f.Points())
	if err == nil {
		if _, err := f.Finish(results); err != nil {
			t.Fatal(err)
		}
	}
	return results, notes, int(n.Load()), err
}

func TestSweepSameBytesForAnyWorkers(t *testing.T) {
	s := mustSweep(t, testkit.Write(t, "s.toml", smallSweep))
	late := func(ctx context.Context, p config.Point, sink Sink) (sim.Summary, error) {
		time.Sleep(time.Duration(p.Seed*uint64(p.System.Window)*uint64(p.Workload.Rate*10)%5) * time.Millisecond)
		return pretend(ctx, p, sink)
	}
	results, _, ran, err := runSweep(t, "one", s, 1, late)
	if err != nil || ran != 16 || len(results) != 16 {
		t.Fatalf("%d of 16 points ran, %d results, %v", ran, len(results), err)
	}
	if _, _, _, err := runSweep(t, "many", s, 6, late); err != nil {
		t.Fatal(err)
	}
	one := testkit.Tree(t, "one")
	if len(one) != 3+2+16*4 {
		t.Errorf("%d files", len(one))
	}
	testkit.SameTree(t, one, testkit.Tree(t, "many"))
	for _, name := range []string{"sweep.csv", "sweep.json"} {
		text := one[name]
		for _, p := range mustPoints(t, s) { // every new key makes new hashes
			text = strings.ReplaceAll(text, p.Hash, "HASH")
		}
		testkit.Golden(t, name, text)
	}
}

func TestSweepRunsOnlyWhatIsMissing(t *testing.T) {
	t.Chdir(t.TempDir())
	s := mustSweep(t, testkit.Rewrite(t, "s.toml", smallSweep))
	boom := errors.New("boom")
	var n atomic.Int32
	results, _, _, err := runSweep(t, "out", s, 1, func(ctx context.Context, p config.Point, sink Sink) (sim.Summary, error) {
		if n.Add(1) > 5 {
			fmt.Fprintln(sink.Requests, "half a file")
			return sim.Summary{}, boom
		}
		return pretend(ctx, p, sink)
	})
	if !errors.Is(err, boom) || len(results) != 5 {
		t.Fatalf("%d results, %v; want five and the failure", len(results), err)
	}
	if _, _, ran, err := runSweep(t, "out", s, 2, pretend); err != nil || ran != 11 {
		t.Errorf("%d ran, %v; want the other eleven", ran, err)
	}
	if _, _, ran, err := runSweep(t, "out", s, 2, pretend); err != nil || ran != 0 {
		t.Errorf("%d ran, %v; want none", ran, err)
	}
	if _, _, _, err := runSweep(t, "whole", s, 2, pretend); err != nil {
		t.Fatal(err)
	}
	testkit.SameTree(t, testkit.Tree(t, "whole"), testkit.Tree(t, "out"))

	// One value more: its points alone run. Then back: none.
	more := mustSweep(t, testkit.Rewrite(t, "s.toml", strings.Replace(smallSweep, "[4, 8]", "[4, 8, 16]", 1)))
	if results, _, ran, err := runSweep(t, "out", more, 2, pretend); err != nil || ran != 8 || len(results) != 24 {
		t.Errorf("%d ran, %d results, %v; want 8 and 24", ran, len(results), err)
	}
	if results, _, ran, err := runSweep(t, "out", s, 2, pretend); err != nil || ran != 0 || len(results) != 16 {
		t.Errorf("%d ran, %d results, %v; want 0 and 16", ran, len(results), err)
	}
}

// TestSweepIndexFindsEverything: from the index alone, every point's summary.
func TestSweepIndexFindsEverything(t *testing.T) {
	s := mustSweep(t, testkit.Write(t, "s.toml", smallSweep))
	f, err := OpenSweepFolder("out", "kept", "test", s)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, _, err := f.Store.Do(t.Context(), Grid{Run: pretend}, f.Points()); err != nil {
		t.Fatal(err)
	}
	var index SweepIndex
	text, err := os.ReadFile("out/sweep.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &index); err != nil {
		t.Fatal(err)
	}
	if len(index.Points) != 16 || !slices.Equal(index.Axes, []string{"system.window"}) {
		t.Fatalf("%d points over %v", len(index.Points), index.Axes)
	}
	for _, p := range index.Points {
		var sum sim.Summary
		text, err := os.ReadFile(filepath.Join("out", p.Folder, SummaryFile))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &sum); err != nil || sum.System != p.System || sum.Rate != p.Rate || sum.Seed != p.Seed {
			t.Errorf("%s: %v, %+v", p.Label, err, sum)
		}
	}
}

func TestSweepMendsDamage(t *testing.T) {
	whole := func(t *testing.T) (*config.Sweep, map[string]string, string) {
		s := mustSweep(t, testkit.Write(t, "s.toml", smallSweep), "system.preset=vllm")
		s.Variants = s.Variants[:1]
		if _, _, _, err := runSweep(t, "out", s, 2, pretend); err != nil {
			t.Fatal(err)
		}
		return s, testkit.Tree(t, "out"), filepath.Join("out/points", mustPoints(t, s)[3].Hash)
	}
	for _, c := range []struct {
		name   string
		damage func(dir string) error
		note   string
	}{
		{"half a summary", func(dir string) error { return os.Truncate(filepath.Join(dir, SummaryFile), 20) }, "summary.json is damaged"},
		{"one byte", func(dir string) error {
			path := filepath.Join(dir, SummaryFile)
			text, err := os.ReadFile(path)
			return errors.Join(err, os.WriteFile(path, []byte(strings.Replace(string(text), "3", "4", 1)), 0o644))
		}, "summary.json is damaged"},
		{"no summary", func(dir string) error { return os.Remove(filepath.Join(dir, SummaryFile)) }, "no summary.json"},
		{"short requests", func(dir string) error { return os.Truncate(filepath.Join(dir, RequestsCSV), 3) }, "requests.csv is damaged"},
		{"another configuration", func(dir string) error { return os.WriteFile(filepath.Join(dir, ConfigFile), nil, 0o644) }, "config.toml is damaged"},
		{"no manifest", func(dir string) error { return os.Remove(filepath.Join(dir, ManifestFile)) }, "no point.json"},
		{"half a manifest", func(dir string) error { return os.Truncate(filepath.Join(dir, ManifestFile), 30) }, "point.json is damaged"},
		{"a manifest of nothing", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, ManifestFile), []byte("{}"), 0o644)
		}, "point.json is damaged"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, before, dir := whole(t)
			if err := c.damage(dir); err != nil {
				t.Fatal(err)
			}
			_, notes, ran, err := runSweep(t, "out", s, 2, pretend)
			if err != nil || ran != 1 {
				t.Errorf("%d ran, %v; want the damaged one", ran, err)
			}
			want := filepath.ToSlash(dir) + ": " + c.note + "; " + "vllm-0.2-s2 runs again"
			if len(notes) != 1 || filepath.ToSlash(notes[0]) != want {
				t.Errorf("notes %q, want %q", notes, want)
			}
			testkit.SameTree(t, before, testkit.Tree(t, "out"))
		})
	}
}

// TestSweepClearsWhatAKilledOneLeft: folders of points that never ended go.
func TestSweepClearsWhatAKilledOneLeft(t *testing.T) {
	s := mustSweep(t, testkit.Write(t, "s.toml", smallSweep))
	for _, dir := range []string{"out", "clean"} {
		if dir == "out" {
			if err := os.MkdirAll("out/points/.0123"+Unfinished, 0o755); err != nil {
				t.Fatal(err)
			}
			testkit.Rewrite(t, "out/points/.0123"+Unfinished+"/requests.csv", "half")
			testkit.Rewrite(t, "out/.summary.json123", "half")
			testkit.Rewrite(t, "out/.sweep.json7", "half")
		}
		if _, _, _, err := runSweep(t, dir, s, 2, pretend); err != nil {
			t.Fatal(err)
		}
	}
	testkit.SameTree(t, testkit.Tree(t, "clean"), testkit.Tree(t, "out"))
}

func TestSweepRefusesOtherFolders(t *testing.T) {
	var user *PointStore
	for _, c := range []struct {
		name    string
		prepare func() error
		want    string
	}{
		{"another version", func() error {
			text := fmt.Sprintf(`{"format":%d,"program":"older"}`, StoreFormat)
			return os.WriteFile("out/points/store.json", []byte(text), 0o644)
		}, fmt.Sprintf("out/points: results of another version of the program (\"older\" in format %d, this is \"test\" in format %[1]d); "+
			"keep them by choosing another folder, or remove this one to run everything again", StoreFormat)},
		{"a store from before there were versions", func() error {
			return os.WriteFile("out/points/store.json", []byte(`{"format":1,"model":1}`), 0o644)
		}, fmt.Sprintf("out/points: results of another version of the program (\"\" in format 1, this is \"test\" in format %d); "+
			"keep them by choosing another folder, or remove this one to run everything again", StoreFormat)},
		{"a damaged version", func() error { return os.WriteFile("out/points/store.json", []byte(`{"form`), 0o644) },
			"out/points/store.json: damaged (unexpected end of JSON input); restore it, or move the folder away to run everything again"},
		{"somebody else's", func() error { return os.MkdirAll("out/points/vllm-0.1-s1", 0o755) },
			"out/points: holds vllm-0.1-s1 but no store.json, so no sweep made it; choose another folder"},
		{"one in use", func() (err error) { user, err = OpenPointStore("out/points", "test", false); return err },
			"out/points: another process is writing here; wait for it to end or choose another folder"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := mustSweep(t, testkit.Write(t, "s.toml", smallSweep))
			if err := os.MkdirAll("out/points", 0o755); err != nil {
				t.Fatal(err)
			}
			if err := c.prepare(); err != nil {
				t.Fatal(err)
			}
			before := testkit.Tree(t, "out")
			_, err := OpenSweepFolder("out", "", "test", s)
			if err == nil || filepath.ToSlash(err.Error()) != c.want {
				t.Errorf("error %q, want %q", err, c.want)
			}
			after := testkit.Tree(t, "out")
			delete(before, "points/.lock")
			delete(after, "points/.lock")
			testkit.SameTree(t, before, after)
		})
	}
	if err := user.Close(); err != nil {
		t.Error(err)
	}
}

func TestSimulateLeavesSweepsAlone(t *testing.T) {
	s := mustSweep(t, testkit.Write(t, "s.toml", smallSweep))
	if _, _, _, err := runSweep(t, "out", s, 2, pretend); err != nil {
		t.Fatal(err)
	}
	before := testkit.Tree(t, "out")
	if _, err := NewStore("out", mustLoad(t, "")); err == nil || !strings.Contains(err.Error(), "holds a sweep") {
		t.Errorf("error %v", err)
	}
	testkit.SameTree(t, before, testkit.Tree(t, "out"))
}

// TestFullDiskKeepsWhatIsFinished: a write that finds no room fails one point
// and says what to do.
func TestFullDiskKeepsWhatIsFinished(t *testing.T) {
	s := mustSweep(t, testkit.Write(t, "s.toml", smallSweep))
	full := &os.PathError{Op: "write", Path: "out/points/x/requests.csv", Err: syscall.ENOSPC}
	var n atomic.Int32
	results, _, _, err := runSweep(t, "out", s, 1, func(ctx context.Context, p config.Point, sink Sink) (sim.Summary, error) {
		sum, err := pretend(ctx, p, sink)
		if n.Add(1) > 4 {
			err = full
		}
		return sum, err
	})
	want := ": write out/points/x/requests.csv: no space left on device; what is finished is kept: make room and give the same command again"
	if err == nil || !strings.HasSuffix(err.Error(), want) || len(results) != 4 {
		t.Errorf("%d results, error %q, want one that ends in %q", len(results), err, want)
	}
	if _, _, ran, err := runSweep(t, "out", s, 1, pretend); err != nil || ran != 12 {
		t.Errorf("%d ran, %v; want the other twelve", ran, err)
	}
	if err := KeptWhenFull(&os.PathError{Op: "write", Path: "x", Err: syscall.EDQUOT}); !strings.Contains(err.Error(), "what is finished is kept") {
		t.Errorf("a full quota: %v", err)
	}
	if err := KeptWhenFull(fs.ErrPermission); err != fs.ErrPermission {
		t.Errorf("another error became %v", err)
	}
}

func TestLongestFirst(t *testing.T) {
	s := mustSweep(t, testkit.Write(t, "s.toml", "[workload]\nrequests = 3\n[system]\npreset = [\"vllm\", \"sparseserve\"]\n[[axis]]\ngrid.workload.rate = [0.1, 0.2]"))
	var points []config.Point
	for _, p := range mustPoints(t, s) {
		points = append(points, p.Point)
	}
	var names []string
	for _, p := range longestFirst(points) {
		names = append(names, p.Name)
	}
	if want := []string{"sparseserve-0.2-s1", "sparseserve-0.1-s1", "vllm-0.2-s1", "vllm-0.1-s1"}; !slices.Equal(names, want) {
		t.Errorf("order %v, want %v", names, want)
	}
}
