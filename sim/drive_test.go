package sim_test

import (
	"fmt"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/cost"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/memory"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// modelled returns the modelled device of a scenario.
func (c *scenario) modelled(t fatal, gpu *hw.Profile) *cost.Device {
	opts := cost.DeviceOptions{Prefix: cost.PrefixOptions{GPUs: 1, Chunk: 1 << 20}}
	var err error
	if opts.Prefix.Drive, err = hw.LoadDrive("pm9a3"); err != nil {
		t.Fatal(err)
	}
	if c.spec.Offload.On {
		opts = cost.DeviceOptions{
			LoadEngine: c.spec.Offload.Load, SaveEngine: c.spec.Offload.Save, Offload: true,
			SaveBufferBytes: int64(c.spec.Offload.SaveBufferMiB * (1 << 20)),
		}
	}
	if c.spec.Hot() {
		opts.HotSlots, opts.BlockTokens = c.spec.Offload.HotBuffer, c.spec.BlockTokens
	}
	opts.Pipelined = c.spec.Progressive() && c.spec.Selection.Pipelined
	d, err := cost.NewDevice(gpu, &c.model, opts)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func profile(t fatal, name string) *hw.Profile {
	p, err := hw.Load(name, engineOf(name), nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// server returns a server for the scenario on a device.
func (c *scenario) server(t fatal, d sim.Device) *sim.Server {
	s, err := sim.NewServer(c.config(t, d))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (c *scenario) config(t fatal, d sim.Device) sim.Config {
	if c.spec.PrefixTiers() && c.spec.NoPrefixTiers() != "" {
		c.spec.PrefixCache.DRAMGiB, c.spec.PrefixCache.SSDGiB = 0, 0
	}
	if !c.spec.Offload.On || !c.spec.Sparse() {
		c.spec.PrefixCache.Attend = sim.PrefixDense
	}
	if c.addressed || c.spec.Hot() ||
		c.spec.Offload.Eviction == kv.ByScore { // one selection a KV head
		c.spec.Selection.Per = sim.PerKVHead
	}
	if c.spec.NoPrefixCache() != "" { // a test has changed what was drawn
		c.spec.PrefixCache.Mode = sim.PrefixOff
	}
	if !c.spec.Offload.On || c.spec.PrefixCache.Attend == sim.PrefixSelected {
		c.spec.PrefixCache.LoadWeight = 0
	}
	cfg := sim.Config{
		Spec: c.spec,
		Model: sim.Model{BoundTokens: c.model.BoundTokens(), WindowLayers: c.model.WindowLayers(),
			Layers: c.model.Layers, KVHeads: c.model.KVHeads, TokenValues: c.model.TokenValues(),
			Queries: c.model.QHeads / c.model.KVHeads, MaxContext: c.model.MaxContext},
		Geometry: c.model.Geometry(c.spec.BlockTokens), HBMBytes: c.hbm, Seed: c.seed, Device: d,
		Engine: c.engine, Addressed: c.addressed,
		Measure: metrics.Measure{Cutoff: c.cutoff, Good: c.good, CardBytes: 2 * c.hbm, FixedBytes: c.hbm},
	}
	cfg.PrefixWorth = c.worth(t)
	if c.spec.PrefixCache.Eviction == memory.Belady {
		cfg.Future = func(yield func(sim.Arrival, error) bool) {
			for _, a := range c.arrivals {
				if !yield(a, nil) {
					return
				}
			}
		}
	}
	if c.spec.Sparse() {
		cfg.Library = library(t, &c.spec)
	}
	return cfg
}

// outcome is a finished run.
type outcome struct {
	log
	server  *sim.Server
	spy     *spy
	metrics *metrics.Run
}

// start returns the scenario's server, ready to run.
func (c *scenario) start(t fatal, gpu *hw.Profile) *outcome {
	o := &outcome{spy: &spy{Device: c.modelled(t, gpu)}}
	o.server = c.server(t, o.spy)
	return o
}

// run serves the scenario to its end and calls look, if any, after every event.
func (o *outcome) run(t fatal, c *scenario, look func() error) {
	if look == nil {
		look = func() error { return nil }
	}
	var err error
	o.metrics, err = o.server.Drive(c.workload(0), o, look)
	if err != nil {
		t.Fatal(fmt.Sprintf("%v\n%v", err, c))
	}
}

// drive is start and run on the scenario's own card.
func (c *scenario) drive(t fatal, look func(*outcome) error) *outcome {
	o := c.start(t, profile(t, c.gpu))
	if look == nil {
		o.run(t, c, nil)
	} else {
		o.run(t, c, func() error { return look(o) })
	}
	return o
}

// engineOf is the engine that a card's figures were first put together with.
func engineOf(card string) string {
	if card == "h200" {
		return "sparseserve-live"
	}
	return "vllm-0.5"
}
