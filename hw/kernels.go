package hw

import (
	"cmp"
	"embed"
	"fmt"
	"reflect"
	"slices"

	"github.com/sparseserve/sparseserve/hw/builtin"
	"github.com/sparseserve/sparseserve/internal/tomlfile"
)

//go:embed kernels/*.toml
var kernelFiles embed.FS

// Kernels are the measured costs of a library's kernels on one card.
type Kernels struct {
	Name  string `toml:"name" want:"a name"`
	Title string `toml:"title"`
	// From names the file of kernels/ whose costs hold, scaled to this card, for tables that are not
	// in this file; empty: this file has all tables.
	From string `toml:"from,omitempty"`
	// MeasuredOn is the card, a name or file as of Card.Kernels.
	MeasuredOn string     `toml:"measured_on" want:"the card on which these costs were measured"`
	Provenance Provenance `toml:"provenance"`

	KernelCosts
}

// Imported reports whether some tables were measured by others.
func (k *Kernels) Imported() bool {
	return slices.ContainsFunc(k.Grids, func(g Grid) bool { return g.From == Imported })
}

// LoadKernels returns built-in kernels by name, or reads a kernels file.
func LoadKernels(nameOrPath string) (*Kernels, error) { return loadKernels(nameOrPath, "") }

// On returns the kernels on card c, without an engine.
func (k *Kernels) On(c *Card) (*Profile, error) {
	costs := k.KernelCosts
	if k.From != "" {
		base, err := loadKernels(k.From, "")
		if err != nil {
			return nil, err
		}
		from, err := LoadCard(base.MeasuredOn)
		if err != nil {
			return nil, err
		}
		costs = base.KernelCosts.on(from, c)
		costs.replace(&k.KernelCosts)
	}
	return &Profile{Name: c.Name, Title: c.Title, GPU: c.GPU, Link: c.Link, CPU: c.CPU,
		Interconnect: c.Interconnect, KernelCosts: costs}, nil
}

// Write writes kernels as a TOML file, atomically.
func (k *Kernels) Write(path string) error { return builtin.Write(map[string]any{path: k}) }

// Write writes a card as a TOML file, atomically.
func (c *Card) Write(path string) error {
	return cmp.Or(c.Validate(), builtin.Write(map[string]any{path: c}))
}

// loadKernels reads a built-in kernels file, or one relative to the folder dir.
func loadKernels(name, dir string) (*Kernels, error) {
	file, text, err := builtin.Read("kernels", kernelFiles, "kernels", name, dir)
	if err != nil {
		return nil, err
	}
	k, err := builtin.Decode[Kernels](file, text)
	if err != nil {
		return nil, err
	}
	if k.From != "" {
		if err := k.derive(dir); err != nil {
			return nil, tomlfile.Place(file, text, err)
		}
	}
	return k, tomlfile.Place(file, text, k.Validate())
}

// derive fills the tables that k lacks from the costs of the kernels file k.From, scaled to this
// file's card.
func (k *Kernels) derive(dir string) error {
	base, err := loadKernels(k.From, dir)
	if err != nil {
		return tomlfile.Wrong("from", "%w", err)
	}
	there, err := LoadCard(builtin.InFolder(base.MeasuredOn, dir))
	if err != nil {
		return fmt.Errorf("kernels %s: measured_on: %w", base.Name, err)
	}
	here, err := LoadCard(builtin.InFolder(k.MeasuredOn, dir))
	if err != nil {
		return tomlfile.Wrong("measured_on", "%w", err)
	}
	own := k.KernelCosts
	k.KernelCosts = base.KernelCosts.on(there, here)
	k.replace(&own)
	return nil
}

// replace copies every table that is set in other.
func (k *KernelCosts) replace(other *KernelCosts) {
	dst, src := reflect.ValueOf(k).Elem(), reflect.ValueOf(other).Elem()
	for i := range src.NumField() {
		if f := src.Field(i); !f.IsZero() {
			dst.Field(i).Set(f)
		}
	}
}

func (k *Kernels) Validate() error {
	return cmp.Or(check(k), k.KernelCosts.validate())
}
