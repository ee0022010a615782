package run

import (
	"context"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/hw/cost"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// Recorded holds the selections of a run's decodes.
type Recorded struct {
	Server sim.Config
	Trace  *kv.Trace
}

// Record makes a run to record the selections of its decodes.
func (x *Simulator) Record(ctx context.Context, p config.Point) (*Recorded, error) {
	s, err := x.prepare(&p)
	if err != nil {
		return nil, err
	}
	defer s.close()
	device, err := cost.NewDevice(s.gpu, &s.model, DeviceOptions(&p.System))
	if err != nil {
		return nil, err
	}
	s.server.Device, s.server.Trace = device, &kv.Trace{}
	if _, err := s.serve(ctx, Sink{}, func(*metrics.Run) []warn.Warning { return nil }); err != nil {
		return nil, err
	}
	return &Recorded{s.server, s.server.Trace}, nil
}
