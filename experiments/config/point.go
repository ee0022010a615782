package config

import (
	"fmt"
	"reflect"
	"strconv"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/fleet"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/sim/score"
	"github.com/sparseserve/sparseserve/traces"
)

// Point is the configuration of one run: one system under one load with one seed.
type Point struct {
	Name     string         // stable, unique within the experiment, fit for a folder
	Model    string         `toml:"model"`
	GPU      string         `toml:"gpu"`
	Seed     uint64         `toml:"seed"`
	Card     hw.Changes     // figures of the card that are not the card's own
	Workload traces.Spec    `toml:"workload"`
	Fleet    fleet.Spec     `toml:"fleet"`
	System   sim.Spec       `toml:"system"`
	Scores   score.Params   `toml:"scores"`
	SLO      SLO            `toml:"slo"`
	Metrics  metrics.Cutoff `toml:"metrics"`
	Output   Output         `toml:"output"`

	// The rest is no part of the point's identity.

	Hash     string         // by Sweep.Points: the name of its folder
	Settings []Setting      // by the axes of its sweep
	Warnings []warn.Warning // of its configuration
	// NoRate is set if the model, the card or the trace differs from the built-in experiment's and no
	// rate is named, so that rates have to be chosen. NoRequests is the same for their number.
	NoRate, NoRequests bool
	// ByRecord is set if the configuration names no system, so that a record's server is simulated by
	// the preset that its kind of log suggests.
	ByRecord bool
}

// PointName returns the name of a point: system, number of replicas if several, load and seed.
func PointName(p *Point) string {
	w := &p.Workload
	load := strconv.FormatFloat(w.Rate, 'f', -1, 64)
	switch {
	case w.Arrivals == traces.ArrivalsTrace:
		load = "trace"
	case w.Arrivals == traces.ArrivalsClosed:
		load = fmt.Sprintf("c%d", w.Concurrency)
	case len(w.Stages) > 0:
		load = "stages"
	}
	system := p.System.Name
	if n := p.Fleet.Replicas; n > 1 {
		system += fmt.Sprintf("-x%d", n)
	}
	return fmt.Sprintf("%s-%s-s%d", system, load, p.Seed)
}

// SystemLabel returns the system name, with the number of replicas if there are several.
func (p *Point) SystemLabel() string {
	if n := p.Fleet.Replicas; n > 1 {
		return fmt.Sprintf("%s x%d", p.System.Name, n)
	}
	return p.System.Name
}

// Label returns the name of the point and what else the axes of its sweep set.
func (p *Point) Label() string { return p.Name + SettingsLabel(p.Settings) }

// Field returns the settable value of a key of the point's configuration, as in prefill.split;
// false if the key does not exist.
func (p *Point) Field(key string) (v reflect.Value, ok bool) {
	v, _, ok = fieldNamed(p, key)
	return v, ok
}

// TOML writes the point as a configuration of its own.
func (p *Point) TOML() ([]byte, error) { return encode(nil, *p) }
