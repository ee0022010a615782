package run

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// A damaged run is made again, be it packed or not, and what is made is what there was.
func TestSweepMendsDamage(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(text []byte) []byte
		ran    int
	}{
		{"half an archive", func(text []byte) []byte { return text[:len(text)/2] }, 4},
		{"no archive", func([]byte) []byte { return []byte("{}") }, 4},
		{"one byte of a run", func(text []byte) []byte { text[120] ^= 1; return text }, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := mustSweep(t, testkit.Write(t, "s.toml", smallSweep), "system.preset=vllm")
			s.Variants = s.Variants[:1]
			if _, _, _, err := runSweep(t, "out", s, 2, pretend); err != nil {
				t.Fatal(err)
			}
			before := testkit.Tree(t, "out")
			path := "out/runs/packed.zip"
			testkit.Rewrite(t, path, string(c.damage([]byte(before["runs/packed.zip"]))))
			_, notes, ran, err := runSweep(t, "out", s, 2, pretend)
			if err != nil || ran != c.ran || len(notes) != c.ran ||
				!strings.HasPrefix(filepath.ToSlash(notes[0]), path+": damaged: ") ||
				!strings.HasSuffix(notes[0], " runs again") {
				t.Errorf("%d ran, notes %q, %v; want %d", ran, notes, err, c.ran)
			}
			after := testkit.Tree(t, "out")
			delete(before, "runs/packed.zip") // in another order
			delete(after, "runs/packed.zip")
			testkit.SameTree(t, before, after)
			if _, notes, ran, err := runSweep(t, "out", s, 2, pretend); err != nil || ran+len(notes) > 0 {
				t.Errorf("mended, %d ran, notes %q, %v", ran, notes, err)
			}
		})
	}
}

// Hidden files of a user stay.
func TestSweepClearsWhatAKilledOneLeft(t *testing.T) {
	s := mustSweep(t, testkit.Write(t, "s.toml", smallSweep))
	for _, dir := range []string{"out", "clean"} {
		own := filepath.Join(dir, RunsFolder, ".git", "config")
		if err := os.MkdirAll(filepath.Dir(own), 0o755); err != nil {
			t.Fatal(err)
		}
		testkit.Rewrite(t, own, "precious")
		if dir == "out" {
			point := "out/runs/.0123456789abcdef" + Unfinished
			if err := os.MkdirAll(point, 0o755); err != nil {
				t.Fatal(err)
			}
			for _, left := range []string{point + "/requests.csv", "out/runs/.0123456789abcdef.lock",
				"out/runs/.0123456789abcdef.missed9", "out/runs/.packed.zip1", "out/.question.toml123",
				"out/.index.json7"} {
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
	for name, c := range map[string]struct {
		prepare func() (*Store, error)
		want    string
	}{
		"somebody else's": {func() (*Store, error) { return nil, os.MkdirAll("out/runs/vllm", 0o755) },
			"out/runs: holds vllm and no runs of this version of sparseserve; choose another folder"},
		"one in use": {func() (*Store, error) { return OpenStore("out/runs", "test", false) },
			"out/runs: another process is writing here; wait for it to end or choose another folder"},
	} {
		t.Run(name, func(t *testing.T) {
			s := mustSweep(t, testkit.Write(t, "s.toml", smallSweep))
			user, err := c.prepare()
			if err != nil {
				t.Fatal(err)
			}
			if user != nil {
				defer user.Close()
			}
			before := testkit.Tree(t, "out")
			_, err = openSweep("out", "", s)
			if err == nil || filepath.ToSlash(err.Error()) != c.want {
				t.Errorf("error %q, want %q", err, c.want)
			}
			after := testkit.Tree(t, "out")
			delete(before, "runs/.lock")
			delete(after, "runs/.lock")
			testkit.SameTree(t, before, after)
		})
	}
}

func TestFullDiskKeepsWhatIsFinished(t *testing.T) {
	s := mustSweep(t, testkit.Write(t, "s.toml", smallSweep))
	full := &os.PathError{Op: "write", Path: "out/runs/x/requests.csv", Err: syscall.ENOSPC}
	var n atomic.Int32
	results, _, _, err := runSweep(t, "out", s, 1,
		func(ctx context.Context, p config.Point, sink Sink) (metrics.Summary, error) {
			sum, err := pretend(ctx, p, sink)
			if n.Add(1) > 4 {
				err = full
			}
			return sum, err
		})
	want := ": write out/runs/x/requests.csv: no space left on device; what is finished is kept: " +
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
