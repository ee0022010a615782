package validate

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/live"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
)

// A machine that is broken is not asked again and again.
func TestValidationBrokenMachine(t *testing.T) {
	var runs int
	v := tinyValidation(t, t.TempDir(), &runs, 0)
	on := v.Live.(*run.Live).On
	v.Live.(*run.Live).On = func(do func(live.Machine) error) error {
		if runs >= 1 {
			runs++
			return errors.New("broken")
		}
		return on(do)
	}
	_, _, err := v.Do(t.Context())
	want := "live run of vllm-s-4-s1: vllm-s-4-s1: broken\nlive run of vllm-so-4-s1: vllm-so-4-s1: " +
		"broken\n1 of 5 live runs are kept in "
	if err == nil || !strings.HasPrefix(err.Error(), want) || runs != 3 {
		t.Errorf("%d runs, error %v", runs, err)
	}
}

func TestValidationInterrupt(t *testing.T) {
	dir := t.TempDir()
	var runs int
	ctx, cancel := context.WithCancel(t.Context())
	v := tinyValidation(t, dir, &runs, 0)
	on := v.Live.(*run.Live).On
	v.Live.(*run.Live).On = func(do func(live.Machine) error) error {
		if runs == 2 {
			cancel()
		}
		return on(do)
	}
	_, _, err := v.Do(ctx)
	if !errors.Is(err, context.Canceled) ||
		!strings.Contains(err.Error(), "2 of 5 live runs are kept: the same command runs the rest") {
		t.Errorf("error %v", err)
	}
	if _, err := Recompute(dir); err == nil ||
		!strings.Contains(err.Error(), "so no validation was finished here") {
		t.Errorf("recompute: %v", err)
	}
	// Of another program, only what is missing runs.
	v = tinyValidation(t, dir, &runs, 0)
	v.Kept, v.LiveProgram = true, "later"
	if report, _, err := v.Do(t.Context()); err != nil || len(report.Runs) != 5 || runs != 3 {
		t.Errorf("the rest: %d runs, report %v, error %v", runs, report, err)
	}
}

// Without a machine that runs live, what is kept is compared, and what is not is said.
func TestKeptRunsAreComparedWithoutTheOthers(t *testing.T) {
	t.Parallel()
	var runs int
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	v := tinyValidation(t, dir, &runs, 0)
	v.Finished = func() {
		if runs == 2 {
			cancel()
		}
	}
	if _, _, err := v.Do(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	v = tinyValidation(t, dir, &runs, 0)
	v.Kept = true
	v.Live.(*run.Live).On = func(func(live.Machine) error) error {
		return fmt.Errorf("%w: tried nothing", cuda.ErrNoLibrary)
	}
	report, notes, err := v.Do(t.Context())
	if err != nil || len(report.Runs) == 0 || len(report.Runs) != len(v.points) ||
		len(report.Runs) >= 5 {
		t.Fatalf("%d runs compared, error %v", len(report.Runs), err)
	}
	if len(notes) != 1 ||
		!strings.Contains(notes[0], fmt.Sprintf("%d of 5 live runs are not kept", 5-len(report.Runs))) ||
		!strings.Contains(notes[0], "left out: "+cuda.ErrNoLibrary.Error()) {
		t.Errorf("notes %q", notes)
	}
	v = tinyValidation(t, dir, &runs, 0)
	v.Kept = true
	v.Live.(*run.Live).On = func(func(live.Machine) error) error { return errors.New("broken") }
	if _, _, err := v.Do(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "live runs are not kept, the first is") ||
		!strings.HasSuffix(err.Error(), "broken") {
		t.Errorf("a machine that is broken: %v", err)
	}
	v = tinyValidation(t, t.TempDir(), &runs, 0)
	v.Kept = true
	v.Live.(*run.Live).On = func(func(live.Machine) error) error {
		return fmt.Errorf("%w: tried nothing", cuda.ErrNoLibrary)
	}
	if _, _, err := v.Do(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "5 of 5 live runs are not kept") {
		t.Errorf("nothing kept: %v", err)
	}
}

// A live run that served nothing has nothing to compare: it is left out, and that is said.
func TestRunsThatServedNothingAreLeftOut(t *testing.T) {
	t.Parallel()
	var runs int
	for gib, served := range map[string]int{"0.0002": 3, "0.0001": 0} {
		v := tinyValidation(t, t.TempDir(), &runs, 0)
		var err error
		if v.Sweep, err = config.LoadSweep(t.Context(), "../validate-tiny.toml", []string{
			`model="../testdata/tiny"`, "workload.requests=3", "system.kv_gib=" + gib}); err != nil {
			t.Fatal(err)
		}
		report, notes, err := v.Do(t.Context())
		if served == 0 {
			if err == nil || !strings.Contains(err.Error(), "no live run served a request: vllm-4-s1 is") {
				t.Errorf("%s GiB: error %v", gib, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(report.Runs) != served || len(notes) != 5-served ||
			!strings.HasPrefix(notes[0], "sparseserve-4-s1 is left out: its live run served no request") {
			t.Errorf("%s GiB: %d runs compared, notes %q", gib, len(report.Runs), notes)
		}
	}
}

// The files of each live run that the repository keeps can be read.
func TestKeptLiveRunsAreWhole(t *testing.T) {
	t.Parallel()
	manifests, err := filepath.Glob(filepath.Join("..", "validation", "*", "live", "*", manifestFile))
	if err != nil || len(manifests) < 50 {
		t.Fatalf("%d kept runs, want 50 and more; %v", len(manifests), err)
	}
	for _, path := range manifests {
		if err := whole(filepath.Dir(path)); err != nil {
			t.Errorf("%s: %v", filepath.Dir(path), err)
		}
	}
}
