package run

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

var twoRates = []string{"workload.requests=3", "system.preset=vllm", "workload.rate=[0.1,0.2]"}

// TestFolderContinues: an interrupted run is completed without its finished points, and all files
// equal those of an uninterrupted run.
func TestFolderContinues(t *testing.T) {
	c := mustLoad(t, "", twoRates...)
	whole, dir := t.TempDir(), t.TempDir()
	if _, err := runAll(t, whole, c, 1, pretend); err != nil {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	ran := 0
	counted := func(ctx context.Context, p config.Point, sink Sink) (metrics.Summary, error) {
		ran++
		if p.Workload.Rate == 0.1 && ran < 3 {
			return metrics.Summary{}, boom
		}
		return pretend(ctx, p, sink)
	}
	if _, err := runAll(t, dir, c, 1, counted); !errors.Is(err, boom) {
		t.Fatalf("error %v", err)
	}
	results, err := runAll(t, dir, c, 1, counted)
	if err != nil || len(results) != 2 || ran != 3 {
		t.Errorf("%d results after %d runs, %v; want 2 after 3", len(results), ran, err)
	}
	testkit.SameTree(t, testkit.Tree(t, whole), testkit.Tree(t, dir))
}

// TestFolderRunsPartsAgain: what an interrupt cut short is kept, but not for finished.
func TestFolderRunsPartsAgain(t *testing.T) {
	c, dir := mustLoad(t, "", twoRates...), t.TempDir()
	folder, err := openRuns(dir, "test", c, false)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	ctx, cancel := context.WithCancel(t.Context())
	results, err := folder.Store.Do(ctx,
		Grid{Partial: true, Workers: 1, Run: func(ctx context.Context, p config.Point,
			sink Sink) (metrics.Summary, error) {
			cancel()
			sum, _ := pretend(ctx, p, sink)
			sum.Interrupted = "interrupted"
			return sum, ctx.Err()
		}}, c)
	if !errors.Is(err, context.Canceled) || len(results) != 1 || results[0].Summary.Interrupted == "" {
		t.Errorf("%d results, %v; want the part of one", len(results), err)
	}
	if missing, err := folder.Store.Missing(t.Context(), c, false); err != nil ||
		len(missing) != 2 {
		t.Errorf("%d points missing, %v; want both", len(missing), err)
	}
}

// TestFolderRefuses: nothing that another run or a person has put into a folder is lost.
func TestFolderRefuses(t *testing.T) {
	trace := testkit.Write(t, "t.csv",
		"arrived_at,num_prefill_tokens,num_decode_tokens\n0,100,10\n1,100,10\n")
	sets := append([]string{"workload.trace=" + trace}, twoRates...)
	for _, c := range []struct {
		name, version string
		sets          []string
		change        func(t *testing.T, dir string)
		want          string
		forced        bool // --force replaces
	}{
		{"another configuration", "test", append(sets, "workload.requests=4"), nil,
			"results of another configuration (vllm-0.1-s1 of other settings or inputs)", true},
		{"another version", "other", sets, nil, "results of another version", true},
		{"another trace", "test", sets, func(t *testing.T, _ string) {
			testkit.Rewrite(t, trace,
				"arrived_at,num_prefill_tokens,num_decode_tokens\n0,100,20\n1,100,10\n")
		}, "results of another configuration (vllm-0.1-s1 of other settings or inputs)", true},
		{"not its own", "test", sets, func(t *testing.T, dir string) {
			os.Remove(filepath.Join(dir, IndexFile))
		}, "choose another folder", false},
		{"in use", "test", sets, func(t *testing.T, dir string) {
			lock, err := LockFolder(filepath.Join(dir, RunsFolder, LockFile), true)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { lock.Close() })
		}, "another process is writing here", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if _, err := runAll(t, dir, mustLoad(t, "", sets...), 1, pretend); err != nil {
				t.Fatal(err)
			}
			mine := filepath.Join(dir, RunsFolder, "notes", "mine.txt")
			if err := errors.Join(os.MkdirAll(filepath.Dir(mine), 0o755),
				os.WriteFile(mine, nil, 0o644)); err != nil {
				t.Fatal(err)
			}
			if c.change != nil {
				c.change(t, dir)
			}
			before := testkit.Tree(t, dir)
			other := mustLoad(t, "", c.sets...)
			if _, err := openRuns(dir, c.version, other, false); err == nil ||
				!strings.Contains(err.Error(), c.want) || errors.Is(err, ErrTaken) != c.forced {
				t.Errorf("error %v, want %q", err, c.want)
			}
			testkit.SameTree(t, before, testkit.Tree(t, dir))

			folder, err := openRuns(dir, c.version, other, true)
			if (err == nil) != c.forced {
				t.Fatalf("forced: %v", err)
			}
			if err != nil {
				testkit.SameTree(t, before, testkit.Tree(t, dir))
				return
			}
			defer folder.Close()
			if missing, err := folder.Store.Missing(t.Context(), other, false); err != nil ||
				len(missing) != 2 {
				t.Errorf("%d points missing, %v; want all", len(missing), err)
			}
			if _, err := os.Stat(filepath.Join(dir, SummaryFile)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the summary is still there: %v", err)
			}
			if _, err := os.Stat(mine); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestFolderOfNothingGoes: a run of which no point finished leaves no folder.
func TestFolderOfNothingGoes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	folder, err := openRuns(dir, "test", mustLoad(t, ""), false)
	if err != nil {
		t.Fatal(err)
	}
	if err := folder.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the result folder is still there: %v", err)
	}
}

// A folder that another process is about to make is not somebody else's: it is locked, or free.
func TestFolderInTheMaking(t *testing.T) {
	dir := t.TempDir()
	runs := filepath.Join(dir, RunsFolder)
	if err := os.Mkdir(runs, 0o755); err != nil {
		t.Fatal(err)
	}
	lock, err := LockFolder(filepath.Join(runs, LockFile), true)
	if err != nil {
		t.Fatal(err)
	}
	c := mustLoad(t, "")
	if _, err := openRuns(dir, "test", c, false); !errors.Is(err, ErrLocked) {
		t.Errorf("locked: %v", err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	folder, err := openRuns(dir, "test", c, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := folder.Close(); err != nil {
		t.Error(err)
	}
}

// A folder of an older version of the program is refused, whatever is asked, and stays as it is.
func TestFolderOfAnOlderVersion(t *testing.T) {
	for _, file := range []string{"sweep.json", "question.txt", "points/store.json", SummaryFile} {
		dir := t.TempDir()
		path := filepath.Join(dir, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755),
			os.WriteFile(path, []byte("{}"), 0o644)); err != nil {
			t.Fatal(err)
		}
		before := testkit.Tree(t, dir)
		for _, replace := range []bool{false, true} {
			if _, err := openRuns(dir, "test", mustLoad(t, ""), replace); err == nil ||
				!strings.Contains(err.Error(), "choose another folder") || errors.Is(err, ErrTaken) {
				t.Errorf("%s: %v", file, err)
			}
		}
		testkit.SameTree(t, before, testkit.Tree(t, dir))
	}
}

// The answer to another question stays, unless it is to be replaced.
func TestAnswersOfOtherQuestionsStay(t *testing.T) {
	dir := t.TempDir() + "/plan"
	for i, c := range []struct {
		text, version  string
		replace, taken bool
	}{{"a", "1", false, false}, {"a", "1", false, false}, {"b", "1", false, true},
		{"a", "2", false, true}, {"b", "1", true, false}, {"a", "1", false, true}} {
		q := &Question{Command: "plan", Text: c.text}
		f, err := OpenFolder(dir, c.version, q, "", c.replace)
		if errors.Is(err, ErrTaken) != c.taken || err != nil && !c.taken {
			t.Errorf("%+v: %v", c, err)
		}
		if err != nil {
			continue
		}
		answer := filepath.Join(dir, "plan.json")
		_, err = os.Stat(answer)
		if here := err == nil; here != (i == 1) {
			t.Errorf("%+v: the answer is there: %v", c, here)
		}
		if _, err := f.Write(File{"plan.json", []byte(c.text)}); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
