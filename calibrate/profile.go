package calibrate

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/sparseserve/sparseserve/hw"
)

// Calibration is the result of a calibration: the samples and their profile.
type Calibration struct {
	Samples *Samples
	Profile *hw.Profile
	Spent   map[string]time.Duration // on each probe; nothing after a refit
	models  []model
}

// measuredShapes lists the shapes of the measured points.
func measuredShapes(s *Samples) []hw.Shape {
	var out []hw.Shape
	for _, at := range s.of(probeLinears, probePointwise) {
		if !slices.ContainsFunc(out, func(o hw.Shape) bool { return o.Name == at.Shape }) {
			m := at.model
			out = append(out, hw.Shape{Name: at.Shape, Hidden: m.Hidden, QHeads: m.QHeads,
				KVHeads: m.KVHeads, HeadDim: m.HeadDim, FFN: m.FFN})
		}
	}
	return out
}

// Fit makes a profile from samples: fitted models, and otherwise the figures of the card's built-in
// profile.
func Fit(s *Samples) (*Calibration, error) {
	for _, probe := range Probes() {
		if probe.needed && len(s.of(probe.Name)) == 0 {
			return nil, fmt.Errorf("no samples of %s: the calibration is not complete", probe.Name)
		}
	}
	if len(s.of(probeLoadFlash).with("pool_mib", basePool)) < 4 {
		return nil, errors.New("too few samples of load.flash: the calibration is not complete")
	}
	p, known, err := baseProfile(s.Origin.Card)
	if err != nil {
		return nil, err
	}
	from := source{fmt.Sprintf("%s, driver %s, CUDA %s, %s", s.Origin.Card, s.Origin.Driver,
		s.Origin.CUDA, s.Origin.Date)}
	if !known {
		strangeCard(s, p)
	}
	p.Provenance = hw.Provenance{Date: s.Origin.Date, Device: s.Origin.Card, Host: s.Origin.Host,
		Driver: s.Origin.Driver, CUDA: s.Origin.CUDA}
	if bytes, err := strconv.ParseFloat(s.Origin.Memory, 64); err == nil && bytes > 0 {
		p.GPU.HBMSize = from.figure(bytes/gib, "GiB", "what the driver shows")
	}
	p.Shapes = measuredShapes(s)
	var models []model
	for _, fit := range fits {
		models = append(models, fit(s, p, from)...)
	}
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("the fits make no valid profile: %w", err)
	}
	p.Fits = nil
	for i := range models {
		p.Fits = append(p.Fits, models[i].judge(p))
	}
	p.Provenance.Notes = append(p.Provenance.Notes,
		"reference, gpu.runtime and nominal peaks are not measured; their sources say where they come "+
			"from")
	return &Calibration{Samples: s, Profile: p, models: models}, nil
}
