package calibrate

import (
	"math"
	"slices"
	"testing"

	"sparseserve/hw"
)

// Gaps come back by attention and batch, those of chunks from what is before them;
// a profile that knows nothing of the GPU's lookup has none of it, and samples
// without the servers give none.
func TestGapsComeBack(t *testing.T) {
	t.Parallel()
	want := truth("h200")
	s := liveSamplesOf(t, want, probeLiveChunk, probeLiveDense, probeLiveHeld, probeLiveLookup)
	got := *want
	models, err := fitGaps(s, &got, source{"a test"})
	if err != nil || len(models) != 4 {
		t.Fatalf("%d models, %v", len(models), err)
	}
	for _, r := range got.Gaps {
		if r.Requests == 6 || r.Requests == 12 {
			t.Errorf("%+v is held out and has a row", r)
		}
		if exact := want.GapSeconds(r.Attention, r.Lookup, r.KVHeads, r.Requests); math.Abs(r.SI()-exact) > 5e-9 {
			t.Errorf("%s %s, %d KV heads, %d requests: %v, want %g s", r.Attention, r.Lookup, r.KVHeads, r.Requests, r.Figure, exact)
		}
	}
	if n := len(got.Gaps); n != 2+3*(5+6) {
		t.Errorf("%d rows", n)
	}
	for _, m := range models {
		for _, at := range m.fit {
			if math.Abs(m.price(&got, at)/at.seconds-1) > 1e-4 {
				t.Errorf("%s, %s: %g s, want %g", m.name, at.Key(), m.price(&got, at), at.seconds)
			}
		}
		if len(m.held) == 0 {
			t.Errorf("%s: nothing held out", m.name)
		}
	}
	old := *want
	old.Host.Lookup = hw.Figure{}
	if models, err := fitGaps(s, &old, source{"a test"}); err != nil || len(models) != 3 || slices.ContainsFunc(old.Gaps, func(r hw.GapRow) bool { return r.Lookup != "" }) {
		t.Errorf("without the GPU's lookup %d models, %v", len(models), err)
	}
	if models, err := fitGaps(&Samples{}, &got, source{"a test"}); err != nil || len(models)+len(got.Gaps) > 0 {
		t.Errorf("nothing measured: %d models, %d rows, %v", len(models), len(got.Gaps), err)
	}
}
