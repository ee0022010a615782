package calibrate

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A host whose copies during prefill vary is reported as soon as they are measured; where it is
// asked for that ends the calibration, whose samples are kept. On a steady host nothing is logged.
func TestDisturbedHost(t *testing.T) {
	t.Parallel()
	const warning = "the host's CPU is disturbed"
	for name, c := range map[string]struct {
		noise float64
		stop  bool
	}{"steady": {0.003, true}, "disturbed": {0.2, false}, "stopped": {0.2, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newFake(truth("a100-40gb"), c.noise, 3)
			var h heard
			o := h.options(filepath.Join(t.TempDir(), "card.toml"), Quick)
			o.Steady = c.stop
			done, err := Run(context.Background(), fakeMachine(b), o, "2026-01-02")
			logged := slices.ContainsFunc(h.logged,
				func(s string) bool { return strings.Contains(s, warning) })
			loud := c.noise > 0.1
			if logged != loud {
				t.Errorf("logged %q", h.logged)
			}
			if c.stop && loud {
				if !errors.Is(err, ErrDisturbed) || done != nil ||
					slices.ContainsFunc(b.prepared,
						func(key string) bool { return strings.HasPrefix(key, probeSaveFlash) }) {
					t.Errorf("it goes on: %v", err)
				}
				if old, err := os.ReadFile(CSVPath(o.Out) + ".old"); err != nil ||
					!strings.Contains(string(old), probeLayersMemcpy) {
					t.Errorf("samples are lost: %v", err)
				}
				b.prepared = nil // the same command again uses none of them
				if _, err := Run(context.Background(), fakeMachine(b), o, "2026-01-02"); !errors.Is(
					err, ErrDisturbed) || !slices.Contains(b.prepared, point(probeLinears, shapes[0], 1).Key()) {
					t.Errorf("again: %v after %d points", err, len(b.prepared))
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if noted := slices.ContainsFunc(
				done.Profile.Provenance.Notes,
				func(s string) bool { return strings.Contains(s, warning) }); noted != loud {
				t.Errorf("notes: %q", done.Profile.Provenance.Notes)
			}
		})
	}
}
