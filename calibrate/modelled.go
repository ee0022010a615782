package calibrate

import (
	"fmt"

	"sparseserve/hw"
)

// The model of a card serves what a live server of the calibrator has served, so that
// whole steps of both can be compared.

// servedBy prices points of servers that requests leave: the model serves the same
// requests. By the point's key; points of which it has too few steps are left out.
func servedBy(p *hw.Profile, all data) (map[string]float64, error) {
	priced := map[string]float64{}
	served := map[leavingKey]*leavingTimes{}
	for _, at := range all {
		key := leavingKey{shape: at.Shape, kind: at.leavingKind(), layers: at.At("layers")}
		if served[key] == nil {
			c, err := at.leavingCase()
			if err != nil {
				return nil, err
			}
			if served[key], err = c.modelled(p); err != nil {
				return nil, err
			}
		}
		if steps, err := served[key].samples(at.Point); err == nil { // else the model has too few of them
			priced[at.Key()] = medianOf(steps).Value
		}
	}
	return priced, nil
}

// modelled serves on the model of a card. Lists are the same whoever looks them up,
// so that the server need not keep books of where blocks are, but where some are
// missing.
func (c *leavingCase) modelled(p *hw.Profile) (*leavingTimes, error) {
	held := *c
	if !c.kind.tight {
		held.kind.held, held.kind.lookup = true, false
	}
	cfg, err := held.config()
	if err != nil {
		return nil, err
	}
	spec := &cfg.Spec
	cfg.Device, err = hw.NewDevice(p, c.model, hw.DeviceOptions{
		LoadEngine: spec.LoadEngine, SaveEngine: spec.SaveEngine, Offload: c.kind.lookup, GPULookup: c.kind.lookup,
		SaveBufferBytes: int64(spec.SaveBuffer * mib), Microbatch: spec.Microbatch, Pipelined: spec.Pipelined,
	})
	if err != nil {
		return nil, err
	}
	return held.serve(cfg, nil)
}

// priceTight prices whole steps of servers whose layers load, by all of the model:
// but for what a gather loses beside progressive attention nothing is fitted to them.
// What could not be priced is said.
func priceTight(s *Samples, p *hw.Profile, from source) (models []model, said []string) {
	p.Load.FlashBesidePSA = hw.Figure{}
	for _, probe := range []string{probeLiveTight, probeLiveTightPSA} {
		all := s.of(probe)
		if len(all) == 0 || !p.Host.Lookup.Set() {
			continue
		}
		priced, err := servedBy(p, all)
		if err != nil {
			said = append(said, fmt.Sprintf("%s is not priced: %v", probe, err))
			continue
		}
		all = all.where(func(at datum) bool { return priced[at.Key()] > 0 })
		fit, held, why := data(nil), all, "steps that load, priced whole: nothing is fitted to them"
		if probe == probeLiveTightPSA {
			if with := fitBesidePSA(p, all, priced, from); with != nil {
				priced = with
				fit, held = all.where(fitsBesidePSA), all.where(func(at datum) bool { return !fitsBesidePSA(at) })
				why = "steps that load, priced whole: only load.flash_beside_psa is fitted to them"
			}
		}
		models = append(models, model{
			name: probe, fit: fit, held: held, why: why,
			price: func(_ *hw.Profile, at datum) float64 { return priced[at.Key()] },
			draw:  picture{x: func(at datum) float64 { return float64(at.At("missing")) }, xLabel: "blocks that a layer loads"},
		})
	}
	return models, said
}
