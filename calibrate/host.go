package calibrate

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/sparseserve/sparseserve/hw"
)

// Cards of one kind differ by percents, hosts by a factor of two: the CPU's time between steps and
// in a layer's round trip depends on its clock, caches and neighbours. Plan Host measures only
// that, with the sizes of Full, on a built-in card, and the overhead of decode layers over their
// kernels. All other figures of the live loop's engine stay.

// hostCosts are the costs of plan Host, in the order of fitting.
var hostCosts = []cost{continueLatency{}, roundTrip{}, hostStep{}, freeBlock{}, blockLoad{},
	layerOverhead{host: true}}

// hostProbes are the probes of hostCosts.
var hostProbes = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	for _, c := range hostCosts {
		for _, p := range c.probes() {
			names[p.Name] = true
		}
	}
	return names
})

// onlyHost keeps the points of hostProbes.
func onlyHost(all []*planned) []*planned {
	return slices.DeleteFunc(all, func(p *planned) bool { return !hostProbes()[p.Probe] })
}

// fitHost makes a profile with host figures from the samples and all others from the built-in card.
func fitHost(s *Samples) (*Calibration, error) {
	for _, probe := range []string{probeLive, probeLiveLoads, probeLiveFreed} {
		if len(s.of(probe)) == 0 {
			return nil, fmt.Errorf("no samples of %s: the host is not measured", probe)
		}
	}
	if len(roundTripData(s)) == 0 {
		return nil, errors.New("no samples of layers' round trips: the host is not measured")
	}
	p, known, err := baseProfile(s.Origin.Card)
	if err != nil {
		return nil, err
	}
	if !known {
		return nil, fmt.Errorf("%s is not built in: its kernels have to be measured too, as "+
			"sparseserve calibrate run does", s.Origin.Card)
	}
	from := source{fmt.Sprintf("%s, of a %s, driver %s, CUDA %s, %s", s.Origin.Host, s.Origin.Card,
		s.Origin.Driver, s.Origin.CUDA, s.Origin.Date)}
	p.Fits, p.Provenance.Notes = nil, nil
	var models []model
	for _, c := range hostCosts {
		models = append(models, c.fit(s, p, from)...)
	}
	if p, err = asRead(p); err != nil {
		return nil, err
	}
	for i := range models {
		p.Fits = append(p.Fits, models[i].judge(p))
	}
	return &Calibration{Samples: s, Profile: p, models: models}, nil
}

// HostOnly reports whether only the host was measured. Write then writes an engine and no card.
func (c *Calibration) HostOnly() bool { return c.Samples.Origin.Plan == string(Host) }

// writeHost writes the engine.
func (c *Calibration) writeHost(out string) error {
	e, err := hw.LoadEngine(liveEngine)
	if err != nil {
		return err
	}
	e.EngineCosts = c.Profile.EngineCosts
	return e.Write(out, "this project's live loop, on a host with "+c.Samples.Origin.Host)
}
