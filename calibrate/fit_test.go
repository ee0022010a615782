package calibrate

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/sparseserve/sparseserve/hw"
)

// measured runs the plan against a fake machine, without files.
func measured(t testing.TB, plan Plan, f *fakeBench) *Samples {
	t.Helper()
	s, err := sampled(plan, f)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func sampled(plan Plan, f *fakeBench) (*Samples, error) {
	o := fakeOrigin
	o.Plan, o.Date, o.Card = string(plan), "2026-01-02", fakeCards[f.truth.card]
	s := &Samples{Origin: o}
	for _, p := range points(plan, fakeLimits) {
		timed, err := f.Prepare(p)
		if err != nil {
			return nil, err
		}
		samples, err := FullRule.sample(context.Background(), timed)
		if err != nil {
			return nil, err
		}
		s.Records = append(s.Records, Record{p, samples})
	}
	return s, nil
}

func fitted(t testing.TB, s *Samples) *Calibration {
	t.Helper()
	c, err := Fit(s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// calibrated is a machine of known figures, measured in full with 1 % noise, and its fit.
var calibrated = sync.OnceValues(func() (*Calibration, error) {
	s, err := sampled(Full, newFake(truth("a100-40gb"), 0.01, 7))
	if err != nil {
		return nil, err
	}
	return Fit(s)
})

// The fits find the figures that the machine is made of, within a tolerance each.
func TestFitsRecoverKnownFigures(t *testing.T) {
	t.Parallel()
	c, err := calibrated()
	if err != nil {
		t.Fatal(err)
	}
	got := c.Profile
	for _, w := range wanted(truth("a100-40gb"), got) {
		if e := w.got.SI()/w.want - 1; !(math.Abs(e) <= w.tolerance) {
			t.Errorf("%s: %.4g %s, want %.4g in SI (%+.1f %%)", w.name, w.got.Value, w.got.Unit, w.want,
				100*e)
		}
		if w.got.From != hw.Measured || !strings.Contains(w.got.Source, "driver 580.1") {
			t.Errorf("%s: provenance %s, %q", w.name, w.got.From, w.got.Source)
		}
	}
	for _, f := range got.Fits {
		if len(f.Flags) > 0 && f.HeldOut > 0 {
			t.Errorf("%s is flagged: %v", f.Model, f.Flags)
		}
	}
	if got.Provenance.Device != fakeOrigin.Card || got.Provenance.Date != "2026-01-02" ||
		got.GPU.HBMSize.SI() != 40<<30 {
		t.Errorf("provenance %+v, HBM %+v", got.Provenance, got.GPU.HBMSize)
	}
}

// Without noise the finished profile prices every point held out as the
// machine did, whatever the machine's figures.
func TestFitsAreExactOnExactSamples(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	rounds := 3
	if testing.Short() {
		rounds = 1
	}
	for round := range rounds {
		want := truth([]string{"a100-40gb", "a100-80gb"}[round%2])
		scale := func(figure *float64, low, high float64) {
			*figure *= low * math.Pow(high/low, r.Float64())
		}
		scale(&want.load, 0.3, 3)
		scale(&want.scatter.launch, 0.7, 1.3)
		scale(&want.gather.launch, 0.7, 1.3)
		scale(&want.save, 0.3, 3)
		scale(&want.flashCall, 0.5, 10)
		scale(&want.dense.rate, 0.3, 1)
		scale(&want.dense.launch, 0.3, 1)
		scale(&want.scoreRate, 0.2, 1)
		got := fitted(t, measured(t, Full, newFake(want, 0, 1))).Profile
		for _, f := range got.Fits {
			limit := 0.04
			if strings.HasPrefix(f.Model, "linears") || strings.HasPrefix(f.Model, "pointwise") ||
				f.Model == "prefill_attention" || f.Model == "load.flash" {
				// straight lines between other points than the machine's; a floor that only small
				// points see
				limit = 0.12
			}
			if f.MaxError > limit {
				t.Errorf("machine %d, %s: %+v", round, want.card, f)
			}
		}
	}
}
