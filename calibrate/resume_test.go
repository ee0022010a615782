package calibrate

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An interrupted run keeps its samples; the next measures only the rest.
func TestInterruptedRunResumes(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "card.toml")
	ctx, interrupt := context.WithCancel(context.Background())
	first := newFake(truth("a100-40gb"), 0.01, 5)
	const before = 40
	first.fail = func(Point) error {
		if len(first.prepared) == before {
			interrupt()
		}
		return nil
	}
	var h heard
	if _, err := Run(ctx, fakeMachine(first), h.options(out, Quick), "2026-01-02"); !errors.Is(
		err, ErrInterrupted) {
		t.Fatalf("want an interrupt, got %v", err)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("an interrupted run wrote a profile")
	}
	second := newFake(truth("a100-40gb"), 0.01, 6)
	c, err := Run(context.Background(), fakeMachine(second), h.options(out, Quick), "2026-01-03")
	if err != nil {
		t.Fatal(err)
	}
	all := points(Quick, fakeLimits)
	kept := before - 1 // the point of the interrupt
	if got := len(second.prepared); got != len(all)-kept {
		t.Errorf("measured %d points after the interrupt, want %d of %d", got, len(all)-kept, len(all))
	}
	if len(c.Samples.Records) != len(all) || c.Profile.Provenance.Date != "2026-01-02" {
		t.Errorf("%d points of %s, want %d of the first day", len(c.Samples.Records),
			c.Profile.Provenance.Date, len(all))
	}
	if len(h.logged) != 2 || !strings.Contains(h.logged[0], "measured in") ||
		!strings.Contains(h.logged[1], "not measured again") {
		t.Errorf("logged %q", h.logged)
	}
}

// Samples of another card, driver, library or plan are put aside, with a word
// why; asked to, all samples are.
func TestOtherOriginStartsAnew(t *testing.T) {
	type origin struct {
		name   string
		change func(m *Machine, o *Options)
		logged string
	}
	all := []origin{
		{"fresh", func(_ *Machine, o *Options) { o.Fresh = true }, ""},
		{"card", func(m *Machine, _ *Options) { m.Origin.Card = "NVIDIA H200" },
			`card "NVIDIA A100-SXM4-40GB", not "NVIDIA H200"`},
		{"driver", func(m *Machine, _ *Options) { m.Origin.Driver = "590.2" },
			`driver "580.1", not "590.2"`},
		{"library", func(m *Machine, _ *Options) { m.Origin.Library = "2" }, `library "1", not "2"`},
	}
	if testing.Short() {
		all = all[:2]
	}
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(t.TempDir(), "card.toml")
			var h heard
			stop := errors.New("enough")
			half := newFake(truth("a100-40gb"), 0, 1)
			half.fail = func(Point) error {
				if len(half.prepared) > 20 {
					return stop
				}
				return nil
			}
			if _, err := Run(context.Background(), fakeMachine(half), h.options(out, Quick),
				"2026-01-02"); !errors.Is(err, stop) {
				t.Fatal(err)
			}
			h.logged = nil // of the failures
			b := newFake(truth("a100-40gb"), 0, 1)
			m, o := fakeMachine(b), h.options(out, Quick)
			c.change(&m, &o)
			if _, err := Run(context.Background(), m, o, "2026-01-03"); err != nil {
				t.Fatal(err)
			}
			if got, want := len(b.prepared), len(points(Quick, fakeLimits)); got != want {
				t.Errorf("measured %d points, want all %d", got, want)
			}
			if logged := strings.Join(h.logged, "\n"); c.logged != "" &&
				!strings.Contains(logged, c.logged) ||
				c.logged == "" && logged != "" {
				t.Errorf("logged %q, want %q", logged, c.logged)
			}
			if _, err := os.Stat(CSVPath(out) + ".old"); err != nil {
				t.Errorf("the old samples are gone: %v", err)
			}
		})
	}
}

// A file that is not samples is never overwritten.
func TestForeignFileIsKept(t *testing.T) {
	out := filepath.Join(t.TempDir(), "card.toml")
	if err := os.WriteFile(CSVPath(out), []byte("a,b\n1,2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var h heard
	_, err := Run(context.Background(), fakeMachine(newFake(truth("a100-40gb"), 0, 1)),
		h.options(out, Quick), "2026-01-02")
	if err == nil || !strings.Contains(err.Error(), "card.csv:1") ||
		!strings.Contains(err.Error(), "move the file away") {
		t.Errorf("got %v", err)
	}
	if data, _ := os.ReadFile(CSVPath(out)); string(data) != "a,b\n1,2\n" {
		t.Errorf("the file is now %q", data)
	}
}
