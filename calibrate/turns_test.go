package calibrate

import (
	"math"
	"slices"
	"testing"

	"sparseserve/hw"
)

// liveSamplesOf are what a noiseless machine answers to the points of some probes.
func liveSamplesOf(t *testing.T, truth *hw.Profile, probes ...string) *Samples {
	t.Helper()
	f, s := newFake(truth, 0, 1), &Samples{}
	for _, p := range livePoints(scaleOf(Full)) {
		if slices.Contains(probes, p.Probe) {
			timed, err := f.Prepare(p)
			if err != nil {
				t.Fatal(err)
			}
			samples, err := timed(0, 3)
			if err != nil {
				t.Fatal(err)
			}
			s.Records = append(s.Records, Record{Point: p, Samples: samples})
		}
	}
	return s
}

// Round trips that grow by no law come back batch by batch, of both models and of
// PSA, and stand for those of steps that are split. Two batches that are no rows
// are priced between their neighbours.
func TestTurnsComeBack(t *testing.T) {
	t.Parallel()
	want := truth("h200")
	want.Host.Turns, want.Host.PSATurns = nil, nil
	from := source{"a test"}
	for _, heads := range []int{8, 32} {
		for i, n := range []int{1, 2, 3, 4, 6, 8, 12, 16} {
			v := 15 + float64(heads)/4 + []float64{0, 9, 30, 31, 34, 36, 40, 90}[i]
			want.Host.Turns = append(want.Host.Turns, hw.TurnRow{KVHeads: heads, Requests: n, ListsKiB: float64(n*heads) / 4, Figure: from.figure(v, "us", "x")})
			want.Host.PSATurns = append(want.Host.PSATurns, hw.TurnRow{KVHeads: heads, Requests: n, ListsKiB: float64(n*heads) / 2, Figure: from.figure(v+11, "us", "x")})
		}
	}
	s := liveSamplesOf(t, want, probeLive, probeLiveOffload, probeLiveLeaving, probeLivePSA, probeLiveUnsplit, probeLiveHeld, probeLiveUnsplitPSA, probeLiveHeldPSA)
	got := truth("h200")
	models := fitTurns(s, got, from)
	if len(models) != 2 || len(models[0].held) == 0 {
		t.Fatalf("%d models", len(models))
	}
	for _, m := range models {
		for _, at := range m.fit {
			if want := at.seconds; math.Abs(m.price(got, at)/want-1) > 1e-3 {
				t.Errorf("%s, %s: %g s, want %g", m.name, at.Key(), m.price(got, at), want)
			}
		}
		for _, at := range m.held {
			half := map[int64]float64{6: (31+36)/2. - 34, 12: (36+90)/2. - 40}[at.At("requests")] * 1e-6
			if got := m.price(got, at); m.name == "host.turns" && math.Abs(got-at.seconds-half) > 1e-8 {
				t.Errorf("%s, which is no row: %g s, want %g and %g", at.Key(), got, at.seconds, half)
			}
		}
	}
	for _, n := range []int{1, 2, 3, 4, 8} {
		bytes := float64(n * 32 * 256)
		if got, want := got.TurnSeconds(false, 32, n, bytes), want.TurnSeconds(false, 32, n, bytes); math.Abs(got/want-1) > 1e-3 {
			t.Errorf("%d requests: %g s, want %g", n, got, want)
		}
	}
	sync := got.Host.LayerSync
	if models := slices.Concat(fitLive(s, got, from), fitPSALayers(s, got, from)); len(models) != 1 || got.Host.LayerSync != sync {
		t.Errorf("steps that are split change what others have shown: %d models", len(models))
	}
}

// Without steps that are not split the round trip is that of those that are.
func TestTurnsOfOlderSamples(t *testing.T) {
	t.Parallel()
	want := truth("h200")
	s := liveSamplesOf(t, want, probeLive, probeLiveOffload, probeLiveLeaving, probeLivePSA, probeLiveUnsplit)
	got := truth("h200")
	got.Host.Turns = []hw.TurnRow{{KVHeads: 8, Requests: 1}}
	if models := fitTurns(s, got, source{"a test"}); len(models) > 0 || got.Host.Turns != nil {
		t.Errorf("%d models of half the samples, rows %v", len(models), got.Host.Turns)
	}
	if models := fitLive(s, got, source{"a test"}); len(models) != 2 || math.Abs(got.Host.LayerSync.SI()/want.Host.LayerSync.SI()-1) > 1e-2 {
		t.Errorf("%d models, sync %v, want %v", len(models), got.Host.LayerSync, want.Host.LayerSync)
	}
}

// What the CPU does beside the GPU's lookup comes back for PSA, and nothing where
// one model alone was measured: what a request takes and what its lists take could
// not be told apart.
func TestCPUOfPSAComesBack(t *testing.T) {
	t.Parallel()
	want := truth("h200")
	s := liveSamplesOf(t, want, probeLiveCPUPSA)
	missing := int64(0)
	for _, r := range s.Records {
		missing = max(missing, r.Point.At("missing"))
	}
	if missing < 300 {
		t.Errorf("at most %d blocks of a layer are missing", missing)
	}
	got := truth("h200")
	h := &got.Host
	h.CPUPSALayer, h.CPUPSARequest, h.CPUPSARate, h.CPUPSALoad = hw.Figure{}, hw.Figure{}, hw.Figure{}, hw.Figure{}
	if models := fitCPUPSA(s, got, source{"a test"}); len(models) != 1 {
		t.Fatalf("%d models", len(models))
	}
	for name, pair := range map[string][2]hw.Figure{
		"layer": {h.CPUPSALayer, want.Host.CPUPSALayer}, "request": {h.CPUPSARequest, want.Host.CPUPSARequest}, "rate": {h.CPUPSARate, want.Host.CPUPSARate}, "load": {h.CPUPSALoad, want.Host.CPUPSALoad},
	} {
		if math.Abs(pair[0].SI()/pair[1].SI()-1) > 1e-2 {
			t.Errorf("%s: %v, want %v", name, pair[0], pair[1])
		}
	}
	s.Records = slices.DeleteFunc(s.Records, func(r Record) bool { return r.Point.Shape != shapes[0] })
	if models := fitCPUPSA(s, got, source{"a test"}); len(models) != 0 || h.CPUPSALayer.Set() {
		t.Error("figures of one model alone")
	}
}

// The calls for one launch of PSA come back, the mean of batches; a profile without
// the probe has none.
func TestCallsOfALaunchComeBack(t *testing.T) {
	t.Parallel()
	s, p := &Samples{}, truth("h200")
	for _, at := range pointsOf(probePSALaunchCalls) {
		s.Records = append(s.Records, Record{Point: at, Samples: []float64{7e-6 + 2e-6*float64(len(s.Records))}})
	}
	if fitVerdict(s, p, source{"a test"}); len(s.Records) != 2 || math.Abs(p.Host.PSALaunchCalls.SI()-8e-6) > 1e-9 {
		t.Errorf("%d points, %v", len(s.Records), p.Host.PSALaunchCalls)
	}
	if fitVerdict(&Samples{}, p, source{"a test"}); p.Host.PSALaunchCalls.Set() {
		t.Errorf("nothing measured, yet %v", p.Host.PSALaunchCalls)
	}
}

// A batch that was found to cost more than a larger one shares its time with that one;
// shapes do not meet.
func TestTurnsNeverCostLess(t *testing.T) {
	t.Parallel()
	var turns data
	for shape, values := range map[string][]float64{shapes[0]: {10, 40, 20, 50}, shapes[1]: {5, 6, 7, 8}} {
		for i, v := range slices.Backward(values) {
			turns = append(turns, datum{Point: Point{Probe: probeLiveUnsplit, Shape: shape, Axes: []Axis{{"layers", 2}, {"requests", int64(i + 1)}}}, seconds: v})
		}
	}
	for shape, want := range map[string][]float64{shapes[0]: {10, math.Sqrt(800), math.Sqrt(800), 50}, shapes[1]: {5, 6, 7, 8}} {
		for i, at := range neverLess(turns).where(func(at datum) bool { return at.Shape == shape }) {
			if at.At("requests") != int64(i+1) || math.Abs(at.seconds-want[i]) > 1e-9 {
				t.Errorf("%s: %g s, want %g of %d requests", at.Key(), at.seconds, want[i], i+1)
			}
		}
	}
}
