package calibrate

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/hw"
)

// fakeMachine is a machine without a GPU whose costs are known.
func fakeMachine(b Bench) Machine {
	return Machine{Origin: fakeOrigin, Limits: fakeLimits, Bench: b}
}

type heard struct{ logged []string }

func (h *heard) options(out string, plan Plan) Options {
	return Options{Out: out, Plan: plan, Log: func(s string) { h.logged = append(h.logged, s) },
		Progress: func(int, int, string) {}}
}

// A calibration writes a profile that simulations read, its samples, a picture
// of each model and the paper's figures.
func TestRunWritesEverything(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out := filepath.Join(dir, "card.toml")
	if keep := os.Getenv("KEEP_PLOTS"); keep != "" {
		out = filepath.Join(keep, "card.toml")
	}
	plan := Full
	if testing.Short() {
		plan = Quick
	}
	var h heard
	c, err := Run(context.Background(), fakeMachine(newFake(truth("a100-40gb"), 0.01, 5)),
		h.options(out, plan), "2026-01-02")
	if err != nil {
		t.Fatal(err)
	}
	p, err := hw.Load(out, hw.FilesOf(out).Engine, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Fits) != len(c.models) || p.Name != "a100-40gb" ||
		p.Provenance.Driver != fakeOrigin.Driver {
		t.Errorf("profile %s of driver %s with %d fits, want %d", p.Name, p.Provenance.Driver,
			len(p.Fits), len(c.models))
	}
	info, err := os.Stat(CSVPath(out))
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > 1<<20 {
		t.Errorf("the samples are %d bytes, want at most 1 MiB", info.Size())
	}
	fits, err := os.ReadFile(filepath.Join(PlotDir(out), FitsFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range c.models {
		if n := strings.Count(string(fits), "\n"+p.Name+","+m.name+","); n != len(m.fit)+len(m.held) {
			t.Errorf("%s: %d points in the table of fits, want %d", m.name, n, len(m.fit)+len(m.held))
		}
	}
	if len(h.logged) > 0 {
		t.Errorf("logged %q", h.logged)
	}
	// The file of samples by itself gives the same profile.
	again, err := Refit(CSVPath(out), "")
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(again.Profile, c.Profile) {
		t.Error("a refit of the samples gives another profile")
	}
}
