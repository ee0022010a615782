package calibrate

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/sparseserve/sparseserve/hw"
)

// Cards of one kind differ by percents, their hosts twofold: what the CPU does between two steps
// and in the round trip of a layer is a matter of its clock, caches and neighbours. Plan Host
// measures that alone, with the sizes of Full, on a card that is built in, and by how much layers
// of decodes take longer than their kernels. All else of the live loop's engine stays.

// hostCosts are its costs, in the order of fitting.
var hostCosts = []cost{continueLatency{}, roundTrip{}, hostStep{}, freeBlock{}, blockLoad{},
	layerOverhead{host: true}}

// hostProbes are theirs.
var hostProbes = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	for _, c := range hostCosts {
		for _, p := range c.probes() {
			names[p.Name] = true
		}
	}
	return names
})

// onlyHost keeps the points of the host's probes.
func onlyHost(all []*planned) []*planned {
	return slices.DeleteFunc(all, func(p *planned) bool { return !hostProbes()[p.Probe] })
}

// fitHost makes a profile whose host figures are the samples', and all others the built-in card's.
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

// HostOnly says whether only the host was measured: what is written is an engine, no card.
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
