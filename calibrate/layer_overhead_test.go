package calibrate

import (
	"math"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/hw"
)

// Gaps come back, one a kind of layer, from the servers that show them; samples without
// the servers give none.
func TestGapsComeBack(t *testing.T) {
	t.Parallel()
	want := truth("h200")
	s := liveSamplesOf(t, want, probeLiveDense, probeLiveHeld, probeLiveLookup, probeLiveHeldPSA, probeLiveLookupPSA)
	got := *want
	got.Provenance.Notes = nil
	models := layerOverhead{}.fit(s, &got, source{"a test"})
	said := got.Provenance.Notes
	if len(said) > 0 || len(models) != len(overheadServers) || len(got.LayerOverhead) != len(overheadServers) {
		t.Fatalf("%d models, %d rows, %v", len(models), len(got.LayerOverhead), said)
	}
	for _, r := range got.LayerOverhead {
		if exact := want.LayerOverheadSeconds(r.Attention, r.Lookup); math.Abs(r.SI()-exact) > 5e-9 {
			t.Errorf("%s %s: %v, want %g s", r.Attention, r.Lookup, r.Figure, exact)
		}
	}
	for _, m := range models {
		for _, at := range m.fit {
			if price := m.price(&got, at); math.Abs(price/at.seconds-1) > 2e-4 {
				t.Errorf("%s, %s: %g s, want %g", m.name, at.Key(), price, at.seconds)
			}
		}
		if len(m.held) == 0 {
			t.Errorf("%s: nothing held out", m.name)
		}
	}
	if models := (layerOverhead{}).fit(&Samples{}, &got, source{"a test"}); len(models)+len(got.LayerOverhead) > 0 {
		t.Errorf("nothing measured: %d models, %d rows", len(models), len(got.LayerOverhead))
	}
}

// A server that the model cannot have is said and left out, and the others stay.
func TestGapsOfWhatCannotBe(t *testing.T) {
	t.Parallel()
	want := truth("h200")
	s := liveSamplesOf(t, want, probeLiveDense, probeLiveHeld)
	for i := range s.Records {
		if s.Records[i].Point.Probe == probeLiveDense {
			s.Records[i].Point.Axes = []Axis{{"layers", 0}, s.Records[i].Point.Axes[1]}
		}
	}
	got := *want
	got.Provenance.Notes = nil
	models := layerOverhead{}.fit(s, &got, source{"a test"})
	said := got.Provenance.Notes
	if len(models) != 1 || len(said) != 1 || !strings.Contains(said[0], "layer_overhead.dense is left out") {
		t.Errorf("%d models, %q", len(models), said)
	}
}

// liveSamplesOf are what a machine of known figures says of some servers.
func liveSamplesOf(t *testing.T, truth *hw.Profile, probes ...string) *Samples {
	t.Helper()
	fake, s := newFake(truth, 0, 1), &Samples{Origin: fakeOrigin}
	for _, p := range points(Full, fakeLimits) {
		for _, probe := range probes {
			if p.Probe == probe {
				s.Records = append(s.Records, Record{p, []float64{fake.seconds(p)}})
			}
		}
	}
	return s
}
