package calibrate

import (
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/hw"
)

// A machine that a model cannot express is flagged, and only there: with the
// median where all points are off, with the worst where one is.
func TestFlagsFire(t *testing.T) {
	t.Parallel()
	worst := ""
	type bent struct {
		name  string
		bend  func(Point) float64
		model string
		want  string
	}
	all := []bent{
		{"saves change path at 256 blocks", func(p Point) float64 {
			if p.Probe == probeSaveGPU && p.At("blocks") >= 256 {
				return 0.4
			}
			return 1
		}, "save.gpu", "median error"},
		{"one point of decode is slow", func(p Point) float64 {
			if p.Key() == worst {
				return 1.5
			}
			return 1
		}, "dense_decode", "worst error 3"},
	}
	if testing.Short() {
		all = all[:1]
	} else {
		straight := fitted(t, measured(t, Full, newFake(truth("a100-40gb"), 0.005, 3)))
		for _, m := range straight.models {
			if m.name == "dense_decode" {
				worst = m.held[len(m.held)/2].Key()
			}
		}
	}
	for _, c := range all {
		b := newFake(truth("a100-40gb"), 0.005, 3)
		b.bend = c.bend
		got := fitted(t, measured(t, Full, b)).Profile
		if Flagged(got) != 1 {
			t.Errorf("%s: %d models flagged, want one: %+v", c.name, Flagged(got), got.Fits)
		}
		for _, f := range got.Fits {
			if flags := strings.Join(f.Flags, "; "); f.Model == c.model && !strings.Contains(flags, c.want) {
				t.Errorf("%s: flags of %s are %q, want %q", c.name, f.Model, flags, c.want)
			}
		}
	}
}

// Samples that lack a probe make no profile, and the error names it.
func TestIncompleteSamples(t *testing.T) {
	s := measured(t, Quick, newFake(truth("a100-40gb"), 0, 1))
	for _, p := range Probes() {
		probe := p.Name
		if !p.needed {
			continue
		}
		part := &Samples{Origin: s.Origin}
		for _, r := range s.Records {
			if r.Point.Probe != probe {
				part.Records = append(part.Records, r)
			}
		}
		if _, err := Fit(part); err == nil || !strings.Contains(err.Error(), probe) {
			t.Errorf("without %s: %v", probe, err)
		}
	}
}

// A card without a built-in profile gets peaks above what was measured, and
// has a source for all else.
func TestUnknownCard(t *testing.T) {
	s := measured(t, Quick, newFake(truth("a100-80gb"), 0, 1))
	s.Origin.Card = "NVIDIA L40S"
	p := fitted(t, s).Profile
	if p.Name != "l40s" || p.GPU.PeakFP16.From != hw.Derived || p.GPU.HBMBandwidth.From != hw.Derived {
		t.Errorf("%s, peaks %+v, %+v", p.Name, p.GPU.PeakFP16, p.GPU.HBMBandwidth)
	}
	if p.GPU.Runtime.From == hw.Measured || !strings.Contains(p.GPU.Runtime.Source, "not measured") {
		t.Errorf("gpu.runtime: %+v", p.GPU.Runtime)
	}
	for _, at := range s.of(probeDense) {
		if rate := float64(at.At("batch")*at.At(
			"context_tokens")*at.model.LayerKVBytesPerToken()) / at.seconds; rate > p.GPU.HBMBandwidth.SI() {
			t.Errorf("%s ran at %g bytes/s, the peak is %g", at.Key(), rate, p.GPU.HBMBandwidth.SI())
		}
	}
	if p.Link.Nominal.SI() != 32e9 {
		t.Errorf("a link of %.1f GB/s is nominally %.1f", p.Link.H2D.Value, p.Link.Nominal.Value)
	}
}
