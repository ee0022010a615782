package calibrate

import (
	"math"
	"testing"

	"sparseserve/hw"
)

// Where batches that come in waves of cut lists cost more, the fit finds what; it
// leaves the smooth law where they do not (TestFitsRecoverKnownFigures), and where
// no such batch was measured.
func TestWavesOfSparseDecode(t *testing.T) {
	t.Parallel()
	want := truth("h200")
	from := source{"a test"}
	d := &want.SparseDecode
	d.Launch, d.Rate = from.figure(8, "us", "x"), from.figure(4500, "GB/s", "x")
	d.Merge, d.CTAs = from.figure(50, "ns", "x"), from.figure(216, "CTAs", "x")
	d.Cut, d.Join, d.Wave, d.Full = from.figure(3, "us", "x"), from.figure(4, "us", "x"), from.figure(1.5, "us", "x"), from.figure(180, "CTAs", "x")
	got := fitted(t, measured(t, Full, newFake(want, 0.01, 3))).Profile.SparseDecode
	for _, c := range []struct {
		name      string
		got, want hw.Figure
		tolerance float64
	}{
		{"launch", got.Launch, d.Launch, 0.05}, {"rate", got.Rate, d.Rate, 0.02}, {"cut", got.Cut, d.Cut, 0.2},
		{"join", got.Join, d.Join, 0.25}, {"wave", got.Wave, d.Wave, 0.25}, {"full", got.Full, d.Full, 0.15},
	} {
		if e := c.got.SI()/c.want.SI() - 1; !(math.Abs(e) <= c.tolerance) {
			t.Errorf("%s: %.4g %s, want %.4g %s", c.name, c.got.Value, c.got.Unit, c.want.Value, c.want.Unit)
		}
	}
	all := measured(t, Full, newFake(truth("a100-40gb"), 0.01, 3))
	if smooth := fitted(t, all).Profile.SparseDecode; smooth.Cut.Set() || smooth.Full.Set() {
		t.Errorf("a smooth kernel has waves: %+v", smooth)
	}
}
