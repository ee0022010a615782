package calibrate

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sparseserve/sparseserve/hw"
)

// fakeMachine is a machine without a GPU whose costs are known.
func fakeMachine(b Bench) Machine {
	return Machine{Origin: fakeOrigin, Limits: fakeLimits, Bench: b}
}

type heard struct{ logged []string }

func (h *heard) options(out string, plan Plan) Options {
	return Options{Out: out, Plan: plan, Log: func(s string) { h.logged = append(h.logged, s) }, Progress: func(int, int, string) {}}
}

// A calibration leaves a profile that simulations read, its samples, a picture
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
	c, err := Run(context.Background(), fakeMachine(newFake(truth("a100-40gb"), 0.01, 5)), h.options(out, plan), "2026-01-02")
	if err != nil {
		t.Fatal(err)
	}
	p, err := hw.Load(out, hw.FilesOf(out).Engine, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Fits) != len(c.models) || p.Name != "a100-40gb" || p.Provenance.Driver != fakeOrigin.Driver {
		t.Errorf("profile %s of driver %s with %d fits, want %d", p.Name, p.Provenance.Driver, len(p.Fits), len(c.models))
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
	// The file of samples alone gives the same profile.
	again, err := Refit(CSVPath(out), "")
	if err != nil {
		t.Fatal(err)
	}
	a, err := c.Profile.Encode()
	if err != nil {
		t.Fatal(err)
	}
	b, err := again.Profile.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if string(a) != string(b) {
		t.Error("a refit of the samples gives another profile")
	}
}

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
	if _, err := Run(ctx, fakeMachine(first), h.options(out, Quick), "2026-01-02"); !errors.Is(err, ErrInterrupted) {
		t.Fatalf("want an interrupt, got %v", err)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("an interrupted run wrote a profile")
	}
	// A row that the interrupt cut short is measured again.
	path := CSVPath(out)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data[:len(data)-20], 0o644); err != nil {
		t.Fatal(err)
	}
	second := newFake(truth("a100-40gb"), 0.01, 6)
	c, err := Run(context.Background(), fakeMachine(second), h.options(out, Quick), "2026-01-03")
	if err != nil {
		t.Fatal(err)
	}
	all := points(Quick, fakeLimits)
	kept := before - 1 - 1 // the point of the interrupt, and the row cut short
	if got := len(second.prepared); got != len(all)-kept {
		t.Errorf("measured %d points after the interrupt, want %d of %d", got, len(all)-kept, len(all))
	}
	if len(c.Samples.Records) != len(all) || c.Profile.Provenance.Date != "2026-01-02" {
		t.Errorf("%d points of %s, want %d of the first day", len(c.Samples.Records), c.Profile.Provenance.Date, len(all))
	}
	if len(h.logged) != 2 || !strings.Contains(h.logged[0], "measured in") || !strings.Contains(h.logged[1], "not measured again") {
		t.Errorf("logged %q", h.logged)
	}
}

// Samples of another card, driver, library or plan are put aside, with a word
// why; asked to, all samples are.
func TestOtherOriginStartsAnew(t *testing.T) {
	type origin struct {
		name   string
		change func(m *Machine, o *Options)
		said   string
	}
	all := []origin{
		{"fresh", func(_ *Machine, o *Options) { o.Fresh = true }, ""},
		{"card", func(m *Machine, _ *Options) { m.Origin.Card = "NVIDIA H200" }, `card "NVIDIA A100-SXM4-40GB", not "NVIDIA H200"`},
		{"driver", func(m *Machine, _ *Options) { m.Origin.Driver = "590.2" }, `driver "580.1", not "590.2"`},
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
			if _, err := Run(context.Background(), fakeMachine(half), h.options(out, Quick), "2026-01-02"); !errors.Is(err, stop) {
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
			if said := strings.Join(h.logged, "\n"); c.said != "" && !strings.Contains(said, c.said) || c.said == "" && said != "" {
				t.Errorf("logged %q, want %q", said, c.said)
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
	_, err := Run(context.Background(), fakeMachine(newFake(truth("a100-40gb"), 0, 1)), h.options(out, Quick), "2026-01-02")
	if err == nil || !strings.Contains(err.Error(), "card.csv:1") || !strings.Contains(err.Error(), "move the file away") {
		t.Errorf("got %v", err)
	}
	if data, _ := os.ReadFile(CSVPath(out)); string(data) != "a,b\n1,2\n" {
		t.Errorf("the file is now %q", data)
	}
}

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
	c, err := Run(context.Background(), fakeMachine(b), h.options(filepath.Join(t.TempDir(), "card.toml"), Quick), "2026-01-02")
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

// Sampling ends at the stated confidence, or at a cap.
func TestSamplingRule(t *testing.T) {
	steady := func(_, n int) ([]float64, error) { return filled(n, func(int) float64 { return 1 }), nil }
	wild := func(_, n int) ([]float64, error) {
		return filled(n, func(i int) float64 { return float64(1 + i%2*9) }), nil
	}
	slow := func(w, n int) ([]float64, error) {
		time.Sleep(time.Duration(w+n) * 20 * time.Millisecond)
		return filled(n, func(int) float64 { return 0.02 }), nil
	}
	rule := Rule{Spread: 0.02, Warmup: 2, Least: 9, Most: 50, Time: 100 * time.Millisecond}
	for _, c := range []struct {
		name      string
		timed     Timed
		low, high int
	}{{"steady", steady, 9, 9}, {"wild", wild, 50, 50}, {"slow", slow, 3, 4}} {
		got, err := rule.sample(context.Background(), c.timed)
		if err != nil || len(got) < c.low || len(got) > c.high {
			t.Errorf("%s: %d samples, %v, want %d to %d", c.name, len(got), err, c.low, c.high)
		}
	}
	zero := func(_, n int) ([]float64, error) { return make([]float64, n), nil }
	if _, err := rule.sample(context.Background(), zero); err == nil {
		t.Error("a sample of no time passes")
	}
}

func filled(n int, f func(int) float64) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = f(i)
	}
	return x
}

// A probe that fails is named at once and at the end and its samples are left
// out; all others go on. Where the profile does without it, there is one, without
// what the probe would have said.
func TestFailedProbesAreDropped(t *testing.T) {
	t.Parallel()
	probes := []string{ // the first without which there is no profile, the next of a single point
		probeSaveGPU, probeSync, probeRested, probePrefillMemcpy, probeLive, probeLiveOffload, probePSA, probePSAUneven,
	}
	if testing.Short() {
		probes = probes[:3]
	}
	for _, probe := range probes {
		t.Run(probe, func(t *testing.T) {
			t.Parallel()
			b := newFake(truth("a100-40gb"), 0, 1)
			b.fail = func(p Point) error { // one point of it goes well
				if p.Probe == probe && slices.ContainsFunc(b.prepared[:len(b.prepared)-1], func(k string) bool { return strings.HasPrefix(k, probe+" ") || k == probe }) {
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
			if err == nil || !strings.Contains(err.Error(), probe) || !strings.Contains(err.Error(), "illegal memory access") {
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
			if got, want := len(c.Samples.Records), len(points(Quick, fakeLimits))-len(pointsOf(probe)); got != want {
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
	spare := slices.Concat(liveProbes, []string{
		probeRope, probeClose, probeClock, probeRested, probeRestedDense, probeChunk, probeCallsNone, probeCallsSave, probePrefillMemcpy,
	})
	b.fail = func(p Point) error {
		if slices.Contains(spare, p.Probe) {
			return errors.New("an illegal memory access")
		}
		return nil
	}
	var h heard
	c, err := Run(context.Background(), fakeMachine(b), h.options(filepath.Join(t.TempDir(), "card.toml"), Quick), "2026-01-02")
	if c == nil {
		t.Fatal(err)
	}
	for _, probe := range spare {
		if err == nil || !strings.Contains(err.Error(), probe) {
			t.Errorf("%s failed and is not named: %v", probe, err)
		}
	}
	if c.Profile.BlockClose.Rate.Set() || c.Profile.Clock.GEMMSteadyRatio.Set() || c.Profile.Host.LoadBlock.Set() || c.Profile.Host.DriverContention.Set() || len(c.Profile.Save.MemcpyOverlappedPools) > 0 {
		t.Errorf("not measured, yet %+v", c.Profile.Host)
	}
	for _, f := range c.Profile.Fits {
		if strings.Contains(f.Model, "_wait") || f.Model == "save.memcpy_overlapped" {
			t.Errorf("a fit of %s without samples", f.Model)
		}
	}
}
