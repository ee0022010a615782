package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/traces"
)

// Point is one run: one system at one rate with one seed.
type Point struct {
	Name     string // stable, unique within the experiment, fit for a folder
	Model    string
	GPU      string
	Card     hw.Changes // of the card's figures
	Seed     uint64
	Workload traces.Spec // with its rate
	System   sim.Spec
	Scores   traces.ScoreParams
	SLO      SLO
	Metrics  sim.Cutoff
	Output   Output
}

// Points expands the experiment: by system, then rate, then seed.
func (c *Config) Points() []Point {
	var points []Point
	for _, system := range c.Systems {
		for _, rate := range c.Rates {
			for _, seed := range c.Seeds {
				w := c.Workload
				w.Rate = rate
				points = append(points, Point{
					Name:     PointName(system.Name, w, seed),
					Model:    c.Model,
					GPU:      c.GPU,
					Card:     c.Card,
					Seed:     seed,
					Workload: w,
					System:   system,
					Scores:   c.Scores,
					SLO:      c.SLO,
					Metrics:  c.Metrics,
					Output:   c.Output,
				})
			}
		}
	}
	return points
}

// PointName names a point by system, rate and seed.
func PointName(system string, w traces.Spec, seed uint64) string {
	rate := strconv.FormatFloat(w.Rate, 'f', -1, 64)
	if w.Arrivals == traces.ArrivalsTrace {
		rate = "trace"
	}
	return fmt.Sprintf("%s-%s-s%d", system, rate, seed)
}

// TOML writes the point as a configuration of its own.
func (p *Point) TOML() ([]byte, error) { return p.encode(nil) }

func (p *Point) encode(memo map[any][]byte) ([]byte, error) {
	c := Config{
		Name:     p.Name,
		Model:    p.Model,
		GPU:      p.GPU,
		Card:     p.Card,
		Seeds:    []uint64{p.Seed},
		Rates:    []float64{p.Workload.Rate},
		Workload: p.Workload,
		Systems:  []sim.Spec{p.System},
		Scores:   p.Scores,
		SLO:      p.SLO,
		Metrics:  p.Metrics,
		Output:   p.Output,
	}
	return c.encode(memo)
}

// Hash identifies the point by everything that its result depends on within
// the configuration.
func (p *Point) Hash() (string, error) {
	text, err := p.TOML()
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), err
}
