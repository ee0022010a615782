package calibrate

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/emulator"
)

// What is timed while a prefix loads is so from its first call to its last: loads that end before
// are doubled, and no figure comes of a card on which that does not help.
func TestLoadsOutlastWhatIsTimed(t *testing.T) {
	now := time.Unix(0, 0)
	e := newEmulated(emulator.Config{Clock: func() time.Time { // three round trips take 4 ms
		now = now.Add(time.Millisecond)
		return now
	}})
	g, err := newGPUBench(func(f func(gpu) error) error { return f(e) }, cuda.DeviceInfo{},
		Limits{Threads: 4, DeviceBytes: 1200 * mib})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { must(g.Close()) }()
	for _, c := range []struct {
		loadMs float64
		loads  int
		fails  string
	}{
		{loadMs: 4, loads: 1},
		{loadMs: 1.1, loads: 4},
		{loadMs: 0.2, loads: mostLoads, fails: "16 loads of 512 MiB on 2 SMs end after 3.2 ms, before " +
			"what is timed while they run, after 4 ms: "},
	} {
		if testing.Short() && c.loads != 4 {
			continue // each has seconds of an emulated GPU
		}
		e.aheadMs = c.loadMs
		clear(e.aheads)
		clear(g.overlaps)
		timed, err := g.Prepare(point(probeTripLoading, "", layerLists))
		if (err == nil) != (c.fails == "") || err != nil && !strings.HasPrefix(err.Error(), c.fails) {
			t.Fatalf("loads of %g ms: error %v, want %q", c.loadMs, err, c.fails)
		}
		if most := slices.Max(slices.Collect(maps.Values(e.aheads))); most != c.loads {
			t.Errorf("loads of %g ms: %d one after another, want %d", c.loadMs, most, c.loads)
		}
		if err != nil {
			continue
		}
		if samples, err := timed(1, 1); err != nil || math.Abs(samples[0]-4e-3/3) > 1e-9 {
			t.Errorf("loads of %g ms: samples %v, %v; want a third of 4 ms", c.loadMs, samples, err)
		}
	}
}
