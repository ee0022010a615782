package calibrate

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/hw"
)

// What a machine does not have is left out, with one word for each probe.
func TestSkippedProbes(t *testing.T) {
	t.Parallel()
	b := newFake(truth("a100-40gb"), 0, 1)
	b.fail = func(p Point) error {
		if p.Probe == probeSync {
			return ErrSkip
		}
		return nil
	}
	var h heard
	c, err := Run(context.Background(), fakeMachine(b),
		h.options(filepath.Join(t.TempDir(), "card.toml"), Quick), "2026-01-02")
	if err != nil {
		t.Fatal(err)
	}
	if len(h.logged) != 1 || !strings.HasPrefix(h.logged[0], probeSync) {
		t.Errorf("logged %q", h.logged)
	}
	if f := c.Profile.Host.ContinueLatency; f.Set() {
		t.Errorf("a synchronisation was not measured, yet takes %v", f)
	}
}

// A wrong result ends the run before the point is timed.
func TestWrongResultIsNotTimed(t *testing.T) {
	t.Parallel()
	b := newFake(truth("a100-40gb"), 0, 1)
	wrong := errors.New("block 3: bytes differ")
	b.fail = func(p Point) error {
		if p.Probe == probeSaveGPU {
			return wrong
		}
		return nil
	}
	var h heard
	out := filepath.Join(t.TempDir(), "card.toml")
	_, err := Run(context.Background(), fakeMachine(b), h.options(out, Quick), "2026-01-02")
	if !errors.Is(err, wrong) || !strings.Contains(err.Error(), "save.gpu") {
		t.Errorf("got %v", err)
	}
	if data, _ := os.ReadFile(CSVPath(out)); strings.Contains(string(data), probeSaveGPU+",") {
		t.Error("the point has samples")
	}
}

// A probe that fails is named at once and at the end and its samples are left out; all others go
// on. Where the profile does without it, there is one, without what the probe would have shown.
func TestFailedProbesAreDropped(t *testing.T) {
	t.Parallel()
	probes := []string{ // the first without which there is no profile, the next of a single point
		probeSaveGPU, probeSync, probeClock, probeOverlap, probeSparseIndex,
	}
	if testing.Short() {
		probes = probes[:3]
	}
	for _, probe := range probes {
		t.Run(probe, func(t *testing.T) {
			t.Parallel()
			b := newFake(truth("a100-40gb"), 0, 1)
			b.fail = func(p Point) error { // one point of it goes well
				if p.Probe == probe && slices.ContainsFunc(
					b.prepared[:len(b.prepared)-1],
					func(k string) bool { return strings.HasPrefix(k, probe+" ") || k == probe }) {
					return errors.New("an illegal memory access")
				}
				return nil
			}
			var h heard
			out := filepath.Join(t.TempDir(), "card.toml")
			if len(pointsOf(probe)) < 2 { // of one point all
				b.fail = func(p Point) error {
					if p.Probe == probe {
						return errors.New("an illegal memory access")
					}
					return nil
				}
			}
			c, err := Run(context.Background(), fakeMachine(b), h.options(out, Quick), "2026-01-02")
			if err == nil || !strings.Contains(err.Error(), probe) ||
				!strings.Contains(err.Error(), "illegal memory access") {
				t.Errorf("got %v", err)
			}
			if len(h.logged) != 1 || !strings.HasPrefix(h.logged[0], probe+" failed") {
				t.Errorf("logged %q", h.logged)
			}
			if probeOf(probe).needed {
				if c != nil {
					t.Error("a profile without what every profile needs")
				}
				return
			}
			if c == nil {
				t.Fatal("no profile")
			}
			if _, err := hw.Load(out, hw.FilesOf(out).Engine, nil); err != nil {
				t.Error(err)
			}
			if got, want := len(c.Samples.Records),
				len(points(Quick, fakeLimits))-len(pointsOf(probe)); got != want {
				t.Errorf("%d points have samples, want %d", got, want)
			}
			data, err := os.ReadFile(CSVPath(out))
			if err != nil || strings.Contains(string(data), "\n"+probe+",") {
				t.Errorf("the file has samples of the probe, %v", err)
			}
		})
	}
}

func pointsOf(probe string) (of []Point) {
	for _, p := range points(Quick, fakeLimits) {
		if p.Probe == probe {
			of = append(of, p)
		}
	}
	return of
}

// A machine on which nothing that a profile does without can be measured gets one
// without it, and an error that names all of it.
func TestProfileWithoutTheDispensable(t *testing.T) {
	t.Parallel()
	b := newFake(truth("a100-40gb"), 0, 1)
	spare := []string{
		probeClock, probeChunk, probeOverlap,
	}
	b.fail = func(p Point) error {
		if slices.Contains(spare, p.Probe) {
			return errors.New("an illegal memory access")
		}
		return nil
	}
	var h heard
	c, err := Run(context.Background(), fakeMachine(b),
		h.options(filepath.Join(t.TempDir(), "card.toml"), Quick), "2026-01-02")
	if c == nil {
		t.Fatal(err)
	}
	for _, probe := range spare {
		if err == nil || !strings.Contains(err.Error(), probe) {
			t.Errorf("%s failed and is not named: %v", probe, err)
		}
	}
	if c.Profile.Clock.GEMMSteadyRatio.Set() ||
		c.Profile.Load.LayerDelay.Set() {
		t.Errorf("not measured, yet %+v", c.Profile.Load)
	}
}
