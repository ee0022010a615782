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
	own := *k
	err := own.derive("", c)
	return &Profile{Name: c.Name, Title: c.Title, Chip: c.Chip, KernelCosts: own.KernelCosts}, err
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
		here, err := LoadCard(builtin.InFolder(k.MeasuredOn, dir))
		if err != nil {
			err = tomlfile.Wrong("measured_on", "%w", err)
		} else {
			err = k.derive(dir, here)
		}
		if err != nil {
			return nil, tomlfile.Place(file, text, err)
		}
	}
	return k, tomlfile.Place(file, text, k.Validate())
}

// derive fills the tables that k lacks from the costs of the kernels file k.From, scaled to a card.
func (k *Kernels) derive(dir string, to *Card) error {
	if k.From == "" {
		return nil
	}
	base, err := loadKernels(k.From, dir)
	if err != nil {
		return tomlfile.Wrong("from", "%w", err)
	}
	from, err := base.home(dir)
	if err != nil {
		return err
	}
	own := k.KernelCosts
	k.KernelCosts = base.KernelCosts.on(from, to)
	k.replace(&own)
	return nil
}

// home returns the card on which the kernels were measured.
func (k *Kernels) home(dir string) (*Card, error) {
	c, err := LoadCard(builtin.InFolder(k.MeasuredOn, dir))
	if err != nil {
		return nil, fmt.Errorf("kernels %s: measured_on: %w", k.Name, err)
	}
	return c, nil
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
