package calibrate

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/hw"
)

// The host's plan finds the host's figures from its own points, leaves all others as they are built
// in, and writes an engine that a simulation can have.
func TestHostAlone(t *testing.T) {
	t.Parallel()
	want := truth("a100-40gb")
	s := measured(t, Host, newFake(want, 0, 1))
	full := points(Full, fakeLimits)
	if n := len(s.Records); n == 0 || n > len(full)/4 {
		t.Errorf("%d points of %d are the host's", n, len(full))
	}
	for _, r := range s.Records {
		if p := r.Point.Probe; !strings.HasPrefix(p, "live.") && p != probeSync {
			t.Errorf("%s is not of the host", p)
		}
	}
	s, err := ParseSamples("host.csv", s.Encode()) // as --refit has them
	if err != nil {
		t.Fatal(err)
	}
	c := fitted(t, s)
	found := 0
	for _, w := range wanted(want, c.Profile) {
		if !strings.HasPrefix(w.name, "host.") {
			continue
		}
		found++
		if e := w.got.SI()/w.want - 1; !(math.Abs(e) <= w.tolerance) {
			t.Errorf("%s: %.4g, want %.4g in SI (%+.1f %%)", w.name, w.got.SI(), w.want, 100*e)
		}
		if !strings.Contains(w.got.Source, fakeOrigin.Host) {
			t.Errorf("%s is of %q, not of the host", w.name, w.got.Source)
		}
	}
	if found != 9 {
		t.Errorf("%d figures of the host, want 9", found)
	}
	base, known, err := baseProfile(s.Origin.Card)
	if err != nil || !known {
		t.Fatal(known, err)
	}
	if base, err = asRead(base); err != nil {
		t.Fatal(err)
	}
	kernels := c.Profile.KernelCosts
	kernels.Fits = nil
	if !reflect.DeepEqual(kernels, base.KernelCosts) || c.Profile.GPU != base.GPU {
		t.Error("figures besides the host's have changed")
	}
	for i, row := range c.Profile.LayerOverhead {
		measured := row.Lookup == "" && row.Attention != hw.OverheadPSA
		if measured != (row.Source != base.LayerOverhead[i].Source) {
			t.Errorf("overhead of %s%s: %v, built in %v", row.Attention, row.Lookup, row,
				base.LayerOverhead[i])
		}
	}
	if n := len(c.Profile.LayerOverhead); n != len(base.LayerOverhead) {
		t.Errorf("%d kinds of layer have an overhead, %d are built in", n, len(base.LayerOverhead))
	}

	out := filepath.Join(t.TempDir(), "mine.toml")
	if err := c.Write(out); err != nil {
		t.Fatal(err)
	}
	p, err := hw.Load("a100-40gb", out, nil)
	if err != nil {
		t.Fatal(err)
	}
	if p.Host.LayerSync.SI() != c.Profile.Host.LayerSync.SI() {
		t.Errorf("layer_sync is read as %v, written %v", p.Host.LayerSync, c.Profile.Host.LayerSync)
	}
	if e, err := hw.LoadEngine(out); err != nil || e.Name != "mine" ||
		!strings.Contains(e.Title, fakeOrigin.Host) {
		t.Errorf("%+v, %v", e, err)
	}
}

// Samples of before first decodes were measured give a load the time of both.
func TestHostWithoutFirstDecodes(t *testing.T) {
	t.Parallel()
	want := truth("a100-40gb")
	s := measured(t, Host, newFake(want, 0, 1))
	s.Records = slices.DeleteFunc(s.Records, func(r Record) bool {
		return r.Point.Probe == probeLiveFirst
	})
	h := &fitted(t, s).Profile.Host
	if e := h.LoadBlock.SI()/(want.loadBlock+want.evictBlock) - 1; math.Abs(e) > 0.15 ||
		h.EvictBlock.Set() {
		t.Errorf("a load takes %v, %+.1f %% off that of both; an eviction %v", h.LoadBlock, 100*e,
			h.EvictBlock)
	}
}

// A visit measures each point once and adds that to what is there; a profile is of all of them.
// One that does not come to its end leaves what is there as it is.
func TestVisitsOfTheHostAreAdded(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "host.toml")
	var h heard
	visit := func(ctx context.Context, f *fakeBench) (*Calibration, error) {
		m, o := fakeMachine(f), h.options(out, Host)
		o.Visit = true
		return Run(ctx, m, o, "2026-01-02")
	}
	var sync []float64
	for n := range 3 {
		f := newFake(truth("a100-40gb"), 0, uint64(n))
		f.bend = func(Point) float64 { return 1 + 0.1*float64(n) } // a machine that slows down
		c, err := visit(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		sync = append(sync, c.Profile.Host.LayerSync.SI())
		for _, r := range c.Samples.Records {
			if probeOf(r.Point.Probe).fixed == drainSamples && len(r.visits()) != n+1 {
				t.Errorf("%s: %d visits after %d", r.Point.Key(), len(r.visits()), n+1)
			}
		}
		if read := samplesIn(t, out); !slices.EqualFunc(read.Records, c.Samples.Records,
			func(a, b Record) bool { return slices.Equal(a.Samples, b.Samples) }) {
			t.Error("the file has not what was fitted")
		}
	}
	if sync[1] < sync[0] || sync[2] < sync[1] || sync[2] > 1.2*sync[0] {
		t.Errorf("layer_sync is %v after visits of a machine that is 1, 1.1 and 1.2 times as slow", sync)
	}
	if n := len(h.logged); n != 2 || !strings.Contains(h.logged[0], "is added to them") {
		t.Errorf("logged %q", h.logged)
	}

	was := samplesIn(t, out)
	stop := errors.New("enough")
	ctx, interrupt := context.WithCancel(t.Context())
	for name, fail := range map[string]func() error{"failed": func() error { return stop },
		"interrupted": func() error { interrupt(); return nil }} {
		f := newFake(truth("a100-40gb"), 0, 4)
		f.fail = func(Point) error {
			if len(f.prepared) == 20 {
				return fail()
			}
			return nil
		}
		c, err := visit(ctx, f)
		if c != nil || !errors.Is(err, ErrVisitLost) || errors.Is(err, stop) != (name == "failed") {
			t.Errorf("%s: %v", name, err)
		}
		if now := samplesIn(t, out); !reflect.DeepEqual(now, was) {
			t.Errorf("%s: the visit left something", name)
		}
		if name == "interrupted" {
			ctx, interrupt = context.WithCancel(t.Context())
		}
	}
	interrupt()
}

// samplesIn reads the samples of a profile.
func samplesIn(t *testing.T, out string) *Samples {
	t.Helper()
	kept, err := os.ReadFile(CSVPath(out))
	if err != nil {
		t.Fatal(err)
	}
	read, err := ParseSamples(CSVPath(out), kept)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// What was measured without --visit has some points twice and others, which are subtracted from
// these, once; what was interrupted has some of them not at all.
func TestNoVisitIsAddedToUnevenOnes(t *testing.T) {
	t.Parallel()
	for name, points := range map[string]int{"whole": 0, "interrupted": 4} {
		out := filepath.Join(t.TempDir(), "host.toml")
		ctx, interrupt := context.WithCancel(t.Context())
		f := newFake(truth("a100-40gb"), 0, 1)
		f.fail = func(Point) error {
			if len(f.prepared) == points {
				interrupt()
			}
			return nil
		}
		var h heard
		m, o := fakeMachine(f), h.options(out, Host)
		if _, err := Run(ctx, m, o, "2026-01-02"); errors.Is(err, ErrInterrupted) != (points > 0) {
			t.Fatalf("%s: %v", name, err)
		}
		interrupt()
		o.Visit = true
		if _, err := Run(t.Context(), m, o, "2026-01-02"); err == nil ||
			!strings.Contains(err.Error(), "give --force") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A card that is not built in has no kernels without a calibration of its own.
func TestHostOfAStrangeCard(t *testing.T) {
	t.Parallel()
	s := measured(t, Host, newFake(truth("a100-40gb"), 0, 1))
	s.Origin.Card = "NVIDIA Unheard-of"
	if _, err := Fit(s); err == nil || !strings.Contains(err.Error(), "calibrate run") {
		t.Errorf("%v", err)
	}
	s.Records = s.Records[:1]
	if _, err := Fit(s); err == nil || !strings.Contains(err.Error(), "the host is not measured") {
		t.Errorf("%v", err)
	}
}
