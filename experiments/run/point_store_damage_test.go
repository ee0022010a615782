package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/sim"
)

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
		{"half a summary", func(dir string) error {
			return os.Truncate(filepath.Join(dir, SummaryFile), 20)
		}, "summary.json is damaged"},
		{"one byte", func(dir string) error {
			path := filepath.Join(dir, SummaryFile)
			text, err := os.ReadFile(path)
			return errors.Join(err,
				os.WriteFile(path, []byte(strings.Replace(string(text), "3", "4", 1)), 0o644))
		}, "summary.json is damaged"},
		{"no summary", func(dir string) error { return os.Remove(filepath.Join(dir, SummaryFile)) },
			"no summary.json"},
		{"short requests", func(dir string) error {
			return os.Truncate(filepath.Join(dir, RequestsCSV), 3)
		}, "requests.csv is damaged"},
		{"another configuration",
			func(dir string) error { return os.WriteFile(filepath.Join(dir, ConfigFile), nil, 0o644) },
			"config.toml is damaged"},
		{"no manifest", func(dir string) error { return os.Remove(filepath.Join(dir, ManifestFile)) },
			"no point.json"},
		{"half a manifest", func(dir string) error {
			return os.Truncate(filepath.Join(dir, ManifestFile), 30)
		}, "point.json is damaged"},
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

// Hidden files of a user stay.
func TestSweepClearsWhatAKilledOneLeft(t *testing.T) {
	s := mustSweep(t, testkit.Write(t, "s.toml", smallSweep))
	for _, dir := range []string{"out", "clean"} {
		own := filepath.Join(dir, "points", ".git", "config")
		if err := os.MkdirAll(filepath.Dir(own), 0o755); err != nil {
			t.Fatal(err)
		}
		testkit.Rewrite(t, own, "precious")
		if dir == "out" {
			point := "out/points/.0123456789abcdef" + Unfinished
			if err := os.MkdirAll(point, 0o755); err != nil {
				t.Fatal(err)
			}
			for _, left := range []string{point + "/requests.csv", "out/points/.0123456789abcdef.lock",
				"out/points/.0123456789abcdef.missed9", "out/points/.store.json1", "out/.summary.json123",
				"out/.sweep.json7"} {
				testkit.Rewrite(t, left, "half")
			}
		}
		if _, _, _, err := runSweep(t, dir, s, 2, pretend); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(own); string(text) != "precious" {
			t.Errorf("%s: %q, %v", own, text, err)
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
		}, fmt.Sprintf("out/points: results of another version of the model (\"older\" in format %d, "+
			"this is \"test\" in format %[1]d); "+
			"keep them by choosing another folder, or remove this one to run everything again",
			StoreFormat)},
		{"a store from before there were versions", func() error {
			return os.WriteFile("out/points/store.json", []byte(`{"format":1,"model":1}`), 0o644)
		}, fmt.Sprintf("out/points: results of another version of the model (\"\" in format 1, this "+
			"is \"test\" in format %d); "+
			"keep them by choosing another folder, or remove this one to run everything again",
			StoreFormat)},
		{"a damaged version",
			func() error { return os.WriteFile("out/points/store.json", []byte(`{"form`), 0o644) },
			"out/points/store.json:1: damaged, no valid JSON at column 6: ends within a value: the text " +
				"is cut short; restore it, or move the folder away to run everything again"},
		{"somebody else's", func() error { return os.MkdirAll("out/points/vllm-0.1-s1", 0o755) },
			"out/points: holds vllm-0.1-s1 but no store.json, so no sweep made it; choose another folder"},
		{"one in use", func() (err error) {
			user, err = OpenPointStore("out/points", "test", false)
			return err
		},
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
			_, err := OpenSweepFolder("out", "", "test", s, false)
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

func TestFullDiskKeepsWhatIsFinished(t *testing.T) {
	s := mustSweep(t, testkit.Write(t, "s.toml", smallSweep))
	full := &os.PathError{Op: "write", Path: "out/points/x/requests.csv", Err: syscall.ENOSPC}
	var n atomic.Int32
	results, _, _, err := runSweep(t, "out", s, 1,
		func(ctx context.Context, p config.Point, sink Sink) (sim.Summary, error) {
			sum, err := pretend(ctx, p, sink)
			if n.Add(1) > 4 {
				err = full
			}
			return sum, err
		})
	want := ": write out/points/x/requests.csv: no space left on device; what is finished is kept: " +
		"make room and give the same command again"
	if err == nil || !strings.HasSuffix(err.Error(), want) || len(results) != 4 {
		t.Errorf("%d results, error %q, want one that ends in %q", len(results), err, want)
	}
	if _, _, ran, err := runSweep(t, "out", s, 1, pretend); err != nil || ran != 12 {
		t.Errorf("%d ran, %v; want the other twelve", ran, err)
	}
	if err := KeptWhenFull(&os.PathError{Op: "write", Path: "x",
		Err: syscall.EDQUOT}); !strings.Contains(err.Error(), "what is finished is kept") {
		t.Errorf("a full quota: %v", err)
	}
	if err := KeptWhenFull(fs.ErrPermission); err != fs.ErrPermission {
		t.Errorf("another error became %v", err)
	}
}

// The files of each live run that the repository keeps are those that were kept: one that was
// changed since is left out of a validation.
func TestKeptLiveRunsAreWhole(t *testing.T) {
	t.Parallel()
	manifests, err := filepath.Glob(filepath.Join("..", "validation", "*", "live", "*", ManifestFile))
	if err != nil || len(manifests) < 100 {
		t.Fatalf("%d kept runs, want 100 and more; %v", len(manifests), err)
	}
	for _, path := range manifests {
		m, err := ReadManifest(filepath.Dir(path))
		if err == nil {
			err = m.check(filepath.Dir(path))
		}
		if err != nil {
			t.Errorf("%s: %v", filepath.Dir(path), err)
		}
	}
}
