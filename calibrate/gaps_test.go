package calibrate

import (
	"math"
	"slices"
	"strings"
	"testing"

	"sparseserve/hw"
)

// Gaps come back by attention and batch, those of chunks from what is before them;
// a profile that knows nothing of the GPU's lookup has none of it, and samples
// without the servers give none.
func TestGapsComeBack(t *testing.T) {
	t.Parallel()
	want := truth("h200")
	s := liveSamplesOf(t, want, probeLiveChunk, probeLivePrompt, probeLiveDense, probeLiveHeld, probeLiveLookup)
	got := *want
	models, said := fitGaps(s, &got, source{"a test"})
	if len(said) > 0 || len(models) != 4 {
		t.Fatalf("%d models, %v", len(models), said)
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
		// Gaps of decodes bring the clock back too: with them, prompts behind decodes are
		// served anew.
		behind, err := servedBy(&got, m.fit.where(func(at datum) bool { return at.Probe == probeLivePrompt }))
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range m.fit {
			price := m.price(&got, at)
			if at.Probe == probeLivePrompt {
				price = behind[at.Key()]
			}
			if math.Abs(price/at.seconds-1) > 2e-4 { // a card that waits in gaps is faster behind them by a hair
				t.Errorf("%s, %s: %g s, want %g", m.name, at.Key(), price, at.seconds)
			}
		}
		if len(m.held) == 0 {
			t.Errorf("%s: nothing held out", m.name)
		}
	}
	old := *want
	old.Host.Lookup = hw.Figure{}
	if models, said := fitGaps(s, &old, source{"a test"}); len(said) > 0 || len(models) != 3 || slices.ContainsFunc(old.Gaps, func(r hw.GapRow) bool { return r.Lookup != "" }) {
		t.Errorf("without the GPU's lookup %d models, %v", len(models), said)
	}
	if models, said := fitGaps(&Samples{}, &got, source{"a test"}); len(said)+len(models)+len(got.Gaps) > 0 {
		t.Errorf("nothing measured: %d models, %d rows, %v", len(models), len(got.Gaps), said)
	}
}

// Where the CPU is late for the GPU's lookup nothing can be said of the GPU's gaps, and
// there are no rows; where it is late for some batches, those of the others are right.
func TestGapsBehindTheCPU(t *testing.T) {
	t.Parallel()
	for cpu, least := range map[float64]int{40: 11, 170: 1, 400: 0} {
		want := truth("h200")
		from := source{"a test"}
		want.Host.CPULayer = from.figure(cpu, "us", "x")
		got := *want
		_, said := fitGaps(liveSamplesOf(t, want, probeLiveLookup), &got, from)
		if n := len(got.Gaps); len(said) > 0 || n < least || n == 11 != (cpu == 40) || least == 0 && n > 0 {
			t.Errorf("%g us: %d rows, %v", cpu, n, said)
		}
		for _, r := range got.Gaps {
			if exact := want.GapSeconds(r.Attention, r.Lookup, r.KVHeads, r.Requests); r.SI() > exact+5e-9 || r.SI() < exact/2-5e-9 {
				t.Errorf("%g us: %d KV heads, %d requests: %v, want %g s", cpu, r.KVHeads, r.Requests, r.Figure, exact)
			}
		}
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
	models, said := fitGaps(s, &got, source{"a test"})
	if len(models) != 1 || len(said) != 1 || !strings.Contains(said[0], "gaps.dense are left out") {
		t.Errorf("%d models, %q", len(models), said)
	}
}
