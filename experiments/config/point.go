package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/traces"
)

// Point is one run: one system at one rate with one seed.
type Point struct {
	Name string // stable, unique within the experiment, fit for a folder
	Common
	Seed   uint64
	System sim.Spec

	Warnings []warn.Warning // of its configuration; no part of the point's identity
}

// loads lists the workloads that the experiment expands over: by rate, or by the clients of a
// closed loop.
func (c *Config) loads() []traces.Spec {
	var loads []traces.Spec
	for _, rate := range c.Rates {
		for _, clients := range c.Clients {
			w := c.Workload
			w.Rate, w.Concurrency = rate, clients
			loads = append(loads, w)
		}
	}
	return loads
}

// Points expands the experiment: by system, then replicas, then rate or clients, then
// seed.
func (c *Config) Points() []Point {
	var points []Point
	for _, system := range c.Systems {
		for _, fleet := range c.fleets() {
			for _, w := range c.loads() {
				for _, seed := range c.Seeds {
					p := Point{Common: c.Common, Seed: seed, System: system, Warnings: c.Unused}
					p.Workload, p.Fleet = w, fleet
					p.Name = PointName(&p)
					points = append(points, p)
				}
			}
		}
	}
	return points
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

// tables returns the tables of the point's keys, without [card].
func (p *Point) tables() []settable {
	return slices.Insert(p.Common.tables(), 2, settable{"system", &p.System})
}

// Field returns the settable value of a key of the point's configuration, as in prefill.split;
// false if the key does not exist.
func (p *Point) Field(key string) (v reflect.Value, ok bool) {
	for _, t := range p.tables() {
		for _, f := range FieldsOf(t.v) {
			if t.path(f.Key) == key {
				return f.Value, true
			}
		}
	}
	return v, false
}

// TOML writes the point as a configuration of its own.
func (p *Point) TOML() ([]byte, error) { return p.encode(nil) }

func (p *Point) encode(memo map[any][]byte) ([]byte, error) {
	c := Config{Name: p.Name, Common: p.Common, Seeds: []uint64{p.Seed},
		Rates: []float64{p.Workload.Rate}, Clients: []int{p.Workload.Concurrency},
		Replicas: []int{p.Fleet.Replicas}, Systems: []sim.Spec{p.System}}
	return c.encode(memo)
}
