package validate

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/cuda/live"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

// onModel makes live runs that take as long as the model has them, but for some steps:
// slower says how many times as long step i of the nth making of a run takes.
type onModel struct {
	simulator *run.Simulator
	makings   map[string]int
	slower    func(run string, making, step int) float64
	before    func() error // each run
}

func (m *onModel) Device() (string, error) { return "model", nil }
func (m *onModel) Options() string         { return "" }

func (m *onModel) Shadowed(ctx context.Context, p config.Point, sink run.Sink) (sum sim.Summary,
	steps []live.RecordedStep, err error) {
	if err := m.before(); err != nil {
		return sum, nil, err
	}
	m.makings[p.Name]++
	making := m.makings[p.Name]
	var shadow live.CallRecorder
	sum, err = m.simulator.RunOn(ctx, p, sink, func(d sim.Device) sim.Device {
		shadow.Real = &stretched{
			Device: d, by: func(step int) float64 { return m.slower(p.Name, making, step) }}
		return &shadow
	})
	return sum, shadow.Steps, err
}

// stretched is a device whose steps take longer than it has them, and are not split.
type stretched struct {
	sim.Device
	step int
	by   func(step int) float64
}

func (d *stretched) Finish() (sim.Timing, error) {
	t, err := d.Device.Finish()
	t.Elapsed = des.Time(float64(t.Elapsed) * d.by(d.step))
	t.Phases = sim.Phases{Unsplit: t.Elapsed}
	d.step++
	return t, err
}

func againValidation(t *testing.T, dir string, slower func(run string, making, step int) float64) (
	*Validation, *onModel) {
	t.Helper()
	sweep, err := config.LoadSweep("../validate-tiny.toml", []string{`model="../testdata/tiny"`,
		"workload.requests=3", `system.preset=["vllm","vllm-s","sparseserve"]`}, nil)
	if err != nil {
		t.Fatal(err)
	}
	simulator := run.NewSimulator()
	m := &onModel{simulator: simulator, makings: map[string]int{}, slower: slower,
		before: func() error { return nil }}
	return &Validation{Dir: dir, Sweep: sweep, Program: "test", LiveProgram: "live test",
		Simulate: simulator.Run, Workers: 1, Live: m, LiveOnly: true, Again: true}, m
}

// every nth step takes so many times as long.
func every(n, step int, factor float64) float64 {
	if step%n == 0 {
		return factor
	}
	return 1
}

func TestDisturbedRunsAreMadeAgain(t *testing.T) {
	dir := t.TempDir()
	v, m := againValidation(t, dir, func(run string, making, step int) float64 {
		switch {
		case strings.HasPrefix(run, "vllm-s-") && making == 1:
			return every(5, step, 2) // once
		case strings.HasPrefix(run, "sparseserve"):
			return every(5, step, 2+float64(making)) // worse the second time
		}
		return 1
	})
	for range 2 { // what was made twice is not made a third time
		if _, notes, err := v.Do(t.Context()); err != nil {
			t.Fatal(notes, err)
		}
	}
	for run, n := range m.makings {
		if want := 2 - bit(strings.HasPrefix(run, "vllm-4")); int64(n) != want {
			t.Errorf("%s was made %d times, want %d", run, n, want)
		}
	}
	if len(m.makings) != 3 {
		t.Fatalf("runs %v", m.makings)
	}
	v, _ = againValidation(t, dir, nil)
	v.LiveOnly, v.Again = false, false
	report, _, err := v.Do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	disturbed, told := Disturbed(report.Runs)
	if told != 3 || len(disturbed) != 1 || disturbed[0].Run.System != "sparseserve" ||
		disturbed[0].Slow < 2.9 || disturbed[0].Slow > 3.1 {
		t.Errorf("of %d runs %+v are disturbed; want the first sparseserve, 3 times", told, disturbed)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, liveFolder, ".*")); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

func TestDisturbedRunSaysSo(t *testing.T) {
	v, _ := againValidation(t, t.TempDir(), func(run string, making, step int) float64 {
		return every(5, step, 2/float64(making))
	})
	_, notes, err := v.Do(t.Context())
	want := "vllm-s-4-s1 was disturbed (one in 20 of its steps of the same work takes 2.00 times " +
		"their median) and made once more; the second is kept, which nothing disturbed"
	if err != nil || !slices.Contains(notes, want) {
		t.Errorf("notes %q, error %v; want %q", notes, err, want)
	}
}

// Whatever ends a second making, a run is kept.
func TestInterruptedSecondMakingKeepsARun(t *testing.T) {
	dir := t.TempDir()
	slow := func(run string, making, step int) float64 { return every(5, step, 2) }
	v, m := againValidation(t, dir, slow)
	runs := 0
	m.before = func() error {
		if runs++; runs > 3 {
			return errors.New("broken")
		}
		return nil
	}
	_, notes, err := v.Do(t.Context())
	if err != nil || runs != 5 || len(notes) != 2 ||
		!strings.Contains(notes[0], "and is kept as it was: ") || !strings.HasSuffix(notes[0], "broken") {
		t.Fatalf("%d runs, notes %q, error %v", runs, notes, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	v, m = againValidation(t, dir, slow)
	m.before = func() error { cancel(); return ctx.Err() }
	want := "context canceled; vllm-4-s1 was disturbed and is kept as it was: "
	if _, _, err := v.Do(ctx); !errors.Is(err, context.Canceled) ||
		!strings.HasPrefix(err.Error(), want) {
		t.Errorf("interrupted: %v, want %q", err, want)
	}
	folders, err := filepath.Glob(filepath.Join(dir, liveFolder, "[^.]*"))
	if err != nil || len(folders) != 3 {
		t.Fatalf("%v, %v", folders, err)
	}
	// Killed as a first one had gone and its second was not there yet; before it was
	// known which is steadier; and while a second was made.
	again := filepath.Join(dir, againFolder)
	if err := errors.Join(os.MkdirAll(again, 0o755),
		os.Rename(folders[0], filepath.Join(again, filepath.Base(folders[0]))),
		os.CopyFS(filepath.Join(again, filepath.Base(folders[1])), os.DirFS(folders[1])),
		os.Mkdir(filepath.Join(again, "."+filepath.Base(folders[2])+run.Unfinished), 0o755)); err != nil {
		t.Fatal(err)
	}
	v, m = againValidation(t, dir, slow)
	v.Again = false
	if _, _, err := v.Do(t.Context()); err != nil || len(m.makings) > 0 {
		t.Errorf("runs %v, error %v", m.makings, err)
	}
	if left, err := os.ReadDir(again); len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}

// Runs that were made without it are judged too; the worst goes first, after all that
// are missing, and what another process holds is left to it.
func TestDisturbedRunsInOrder(t *testing.T) {
	dir := t.TempDir()
	var order []string
	factor := map[string]float64{"vllm-4-s1": 1.5, "vllm-s-4-s1": 3, "sparseserve-4-s1": 2}
	slower := func(run string, making, step int) float64 {
		if step == 0 {
			order = append(order, run)
		}
		return every(5, step, factor[run])
	}
	v, _ := againValidation(t, dir, slower)
	v.Again = false
	if _, _, err := v.Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	order = nil
	v, _ = againValidation(t, dir, slower)
	store, err := run.OpenShared(filepath.Join(dir, liveFolder),
		&run.Makers{Device: "model", Program: "live test "})
	if err != nil {
		t.Fatal(err)
	}
	v.Finished = nil
	points, err := v.Sweep.Points()
	if err != nil {
		t.Fatal(err)
	}
	for i := range points {
		points[i].System.Simulation.Heads, points[i].Output = "full", config.Output{Steps: true}
		if points[i].Label == "sparseserve-4-s1" {
			release, err := store.Claim(&points[i].Point)
			if err != nil || release == nil {
				t.Fatal(err)
			}
			defer release()
		}
	}
	if _, _, err := v.Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := []string{"vllm-s-4-s1", "vllm-4-s1"}; !slices.Equal(order, want) {
		t.Errorf("made once more: %v, want %v", order, want)
	}
	if _, err := os.Stat(filepath.Join(dir, againFolder)); err == nil {
		t.Error("the folder of second makings is left over")
	}
}

// Two second makings that fail end them, whatever another process makes between.
func TestSecondMakingsThatFailInARow(t *testing.T) {
	dir, factor := t.TempDir(), map[string]float64{}
	v, m := againValidation(t, dir, func(run string, making, step int) float64 {
		return every(5, step, factor[run])
	})
	var err error
	if v.Sweep, err = config.LoadSweep("../validate-tiny.toml", []string{`model="../testdata/tiny"`,
		"workload.requests=3"}, nil); err != nil {
		t.Fatal(err)
	}
	points, err := v.Sweep.Points()
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range points {
		factor[p.Label] = 6 - float64(i) // in this order
	}
	runs := 0
	m.before = func() error {
		if runs++; runs <= len(points) {
			return nil
		}
		if runs == len(points)+1 {
			claim(t, filepath.Join(dir, liveFolder), &v.points[1].Point,
				&run.Makers{Device: "model", Program: "live test "})
		}
		return errors.New("broken")
	}
	_, notes, err := v.Do(t.Context())
	if err != nil || len(points) != 5 || runs != len(points)+2 || len(notes) != 2 {
		t.Errorf("%d points, %d runs, notes %q, error %v; want 2 runs more than points", len(points),
			runs, notes, err)
	}
}

// claim has another process make a point of a store, until the test ends.
func claim(t *testing.T, dir string, p *config.Point, by *run.Makers) {
	t.Helper()
	store, err := run.OpenShared(dir, by)
	if err != nil {
		t.Error(err)
		return
	}
	release, err := store.Claim(p)
	if err != nil {
		t.Error(err)
		return
	}
	t.Cleanup(func() { release() })
}

func TestDisturbances(t *testing.T) {
	for _, c := range []struct {
		a, b  disturbance
		worse bool
	}{
		{disturbance{Slow: 1.77}, disturbance{Slow: 1, StalledS: 0.04}, true},
		{disturbance{Slow: 1.1, StalledS: 0.3}, disturbance{Slow: 1.25}, true},
		{disturbance{StalledS: 0.05}, disturbance{Slow: 1.01}, true},
		{disturbance{Slow: 1.01}, disturbance{}, false},
	} {
		if got := c.a.much() > c.b.much(); got != c.worse {
			t.Errorf("%+v worse than %+v: %v", c.a, c.b, got)
		}
	}
	if quiet := (disturbance{Slow: DisturbedAbove}); quiet.any() {
		t.Error("as slow as may be counts as disturbed")
	}
	if still := (disturbance{StalledS: 0.03}); !still.any() {
		t.Error("a run that stood still counts as steady")
	}
}
