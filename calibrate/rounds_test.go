package calibrate

import (
	"context"
	"math"
	"testing"

	"sparseserve/hw"
)

// tightSteps measures the points of PSA's servers whose layers load on a machine like a
// profile.
func tightSteps(t *testing.T, p *hw.Profile) *Samples {
	t.Helper()
	b, s := newFake(p, 0.005, 5), &Samples{Origin: fakeOrigin}
	for _, at := range points(Full, fakeLimits) {
		if at.Probe != probeLiveTightPSA {
			continue
		}
		timed, err := b.Prepare(at)
		if err != nil {
			t.Fatal(err)
		}
		samples, err := FullRule.sample(context.Background(), timed)
		if err != nil {
			t.Fatal(err)
		}
		s.Records = append(s.Records, Record{at, samples})
	}
	return s
}

// Steps whose rounds load show what a gather loses beside attention, and none on a
// machine where it loses nothing; of samples without such steps nothing is said. The
// points are of both shapes and of up to 16 requests.
func TestGatherBesidePSA(t *testing.T) {
	want := truth("a100-40gb")
	from := source{"x"}
	want.Load.FlashBesidePSA = from.figure(0.5, "share", "x")
	samples := tightSteps(t, want)
	all := samples.of(probeLiveTightPSA)
	if n := all.values("requests"); len(all.shapes()) != 2 || n[len(n)-1] != 16 {
		t.Errorf("points of %v, %v requests", all.shapes(), n)
	}
	got := *want
	models, said := priceTight(samples, &got, from)
	if e := got.Load.FlashBesidePSA.SI() - 0.5; !(math.Abs(e) < 0.05) {
		t.Errorf("a gather loses %.3f, want 0.5", got.Load.FlashBesidePSA.SI())
	}
	if len(models) != 1 || len(said) != 0 || len(models[0].fit) < 8 || len(models[0].held) < 3 {
		t.Fatalf("%d models, %q", len(models), said)
	}
	if f := models[0].judge(&got); f.MaxError > 0.02 {
		t.Errorf("%+v", f)
	}

	none := truth("a100-40gb")
	got = *want
	if models, _ = priceTight(tightSteps(t, none), &got, from); got.Load.FlashBesidePSA.Set() || len(models) != 1 || len(models[0].fit) != 0 {
		t.Errorf("a gather loses %.3f where it loses nothing", got.Load.FlashBesidePSA.SI())
	}
	got = *want
	if models, _ = priceTight(&Samples{Origin: fakeOrigin}, &got, from); got.Load.FlashBesidePSA.Set() || len(models) != 0 {
		t.Error("a figure of no samples")
	}
}
