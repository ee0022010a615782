package calibrate

import (
	"github.com/sparseserve/sparseserve/hw"
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
// so that the server need not keep books of where blocks are.
func (c *leavingCase) modelled(p *hw.Profile) (*leavingTimes, error) {
	held := *c
	held.kind.held, held.kind.lookup = true, false
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
	return held.serve(cfg)
}
