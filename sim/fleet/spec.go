package fleet

import (
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

// Spec is the [fleet] table of a configuration.
type Spec struct {
	// number of identical servers that share the workload, each with its own GPUs, host, scheduler
	// and cache; one run per value of a list
	Replicas int `toml:"replicas" unit:"servers" range:">= 1, <= 1000"`
	// policy that assigns an arriving request to a replica (list routers)
	Router string `toml:"router" used:"replicas"`
	// [time, replica, duration]: failures. A failed replica (numbered from 0) loses all KV, and its
	// requests restart on others
	Fail [][]float64 `toml:"fail,omitempty" unit:"s, replica, s" rows:"triples"`
	// [time, replica]: from then on the replica takes no new requests and finishes its own
	Drain [][]float64 `toml:"drain,omitempty" unit:"s, replica"`
}

// On reports whether the fleet differs from a single server.
func (s *Spec) On() bool { return s.Replicas > 1 || len(s.Fail)+len(s.Drain) > 0 }

// changes returns Fail and Drain as Outages and Drains.
func (s *Spec) changes() (outages []Outage, drains []Drain) {
	for _, f := range s.Fail {
		outages = append(outages, Outage{int(f[1]), des.FromSeconds(f[0]), des.FromSeconds(f[2])})
	}
	for _, d := range s.Drain {
		drains = append(drains, Drain{Replica: int(d[1]), At: des.FromSeconds(d[0])})
	}
	return outages, drains
}

// Of returns the configuration of a fleet with the given server configuration.
func (s *Spec) Of(cfg sim.Config, device func() (sim.Device, error)) Config {
	outages, drains := s.changes()
	return Config{
		Config: cfg, Replicas: s.Replicas, Router: s.Router, Outages: outages, Drains: drains,
		NewDevice: device,
	}
}
