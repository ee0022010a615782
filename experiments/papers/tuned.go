package papers

import (
	_ "embed"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim"
)

// paperEngine is the engine under which the papers' systems run.
const paperEngine = "vllm-0.5"

//go:embed tuned.toml
var tunedTOML string

// Tuned is a parameter that no paper gives.
type Tuned struct {
	Name string `toml:"name"`
	Key  string `toml:"key"`
	// the hardware profile that has the key; empty: a configuration has it
	Profile  string             `toml:"profile"`
	Value    float64            `toml:"value"`
	Unit     string             `toml:"unit"`   // empty: a number
	Values   map[string]float64 `toml:"values"` // by model; then Value is not set
	Most     float64            `toml:"most"`   // 0 = none
	Where    map[string]string  `toml:"where"`  // keys of the systems that use it, if not all do
	Distance float64            `toml:"distance"`
	Reason   string             `toml:"reason"`
}

// TunedParameters lists all tuned parameters.
func TunedParameters() []Tuned {
	var table struct {
		Tuned []Tuned          `toml:"tuned"`
		Proxy []map[string]any `toml:"proxy"` // of AccuracyProxy; tests hold it
	}
	decode("tuned.toml", tunedTOML, &table)
	return table.Tuned
}

// Of returns the parameter's value for a model; false if it has none.
func (f *Tuned) Of(model string) (float64, bool) {
	if f.Values == nil {
		return f.Value, true
	}
	v, ok := f.Values[model]
	return v, ok
}

// Scaled returns a value whose distance to f.Distance is multiplied by a factor.
func (f *Tuned) Scaled(value, factor float64) float64 {
	v := f.Distance + factor*(value-f.Distance)
	if f.Most > 0 {
		v = math.Min(v, f.Most)
	}
	return v
}

// Change is a tuned parameter at a multiple of its value. A factor of 0 swaps the values of its
// models.
type Change struct {
	Tuned
	Factor float64
}

// String names the change, as the folder of its results; a nil change changes nothing.
func (c *Change) String() string {
	switch {
	case c == nil:
		return "base"
	case c.Factor == 0:
		return "swapped"
	}
	return fmt.Sprintf("%s x %g", c.Name, c.Factor)
}

// Swapped returns the change that swaps the parameter tuned per model: each model gets the value of
// the other.
func Swapped() *Change {
	all := TunedParameters()
	i := slices.IndexFunc(all, func(f Tuned) bool { return len(f.Values) == 2 })
	return &Change{Tuned: all[i]}
}

// of returns the changed value of a model.
func (c *Change) of(model string, value float64) float64 {
	if c.Factor != 0 {
		return c.Scaled(value, c.Factor)
	}
	for other, v := range c.Values {
		if other != model {
			return v
		}
	}
	return value
}

// apply makes the change in a point. It returns false if the point does not depend on the parameter
// or sets its own value. profile names the file of a changed profile.
func (c *Change) apply(p *config.Point, profile string) bool {
	want, ok := c.Of(p.Model)
	if !ok {
		return false
	}
	if c.Profile != "" {
		if p.GPU != c.Profile || p.System.Engine != paperEngine || !c.used(&p.System) {
			return false
		}
		p.GPU, p.System.Engine = profile, hw.FilesOf(profile).Engine
		return true
	}
	v, ok := p.Field(c.Key)
	idle := strings.HasPrefix(c.Key, "offload.") && !p.System.Offload.On
	if !ok || idle || v.Float() != want {
		return false
	}
	v.SetFloat(c.of(p.Model, want))
	return true
}

// used reports whether the parameter affects a system.
func (f *Tuned) used(s *sim.Spec) bool {
	if len(f.Where) > 0 && !s.Offload.On {
		return false
	}
	for _, field := range config.FieldsOf(s) {
		if want, ok := f.Where[field.Key]; ok && field.Value.String() != want {
			return false
		}
	}
	return true
}

// writeProfile writes the changed profile into dir and returns its path; "" if the parameter is not
// part of a profile.
func (c *Change) writeProfile(dir string) (string, error) {
	if c.Profile == "" {
		return "", nil
	}
	gpu, err := hw.Load(c.Profile, paperEngine, nil)
	if err != nil {
		return "", err
	}
	figure, err := figureOf(gpu, c.Key)
	if err != nil {
		return "", fmt.Errorf("tuned.toml: %s: %w", c.Name, err)
	}
	figure.Value = c.Scaled(figure.Value, c.Factor)
	path := filepath.Join(dir, c.Profile+".toml")
	return path, gpu.Write(path, paperEngine)
}

// figureOf finds a figure of a profile by its dotted key.
func figureOf(gpu *hw.Profile, key string) (*hw.Figure, error) {
	for _, f := range config.FieldsOf(gpu) {
		if figure, ok := f.Value.Addr().Interface().(*hw.Figure); ok && f.Key == key {
			return figure, nil
		}
	}
	return nil, fmt.Errorf("%s: is no figure of %s", key, gpu.Name)
}

// alter applies the Studies' change to a point.
func (l *Studies) alter(p *config.Point) {
	if l.Change != nil {
		l.Change.apply(p, l.profile)
	}
}
