package hw

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/sparseserve/sparseserve/hw/lines"
	"github.com/sparseserve/sparseserve/internal/files"
)

//go:embed kernels/*.toml
var kernelFiles embed.FS

// Kernels are the measured costs of a library's kernels on one card.
type Kernels struct {
	Name  string `toml:"name"`
	Title string `toml:"title"`
	// From names the file of kernels/ whose costs hold, scaled to this card, for tables that are not
	// in this file; empty: this file has all tables.
	From       string     `toml:"from,omitempty"`
	MeasuredOn string     `toml:"measured_on"` // the card, a name or file as of Card.Kernels
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
func (k *Kernels) Write(path string) error { return writeAll(map[string]any{path: k}) }

// Write writes a card as a TOML file, atomically.
func (c *Card) Write(path string) error {
	return cmp.Or(c.validate(), writeAll(map[string]any{path: c}))
}

// loadKernels reads a built-in kernels file, or one relative to the folder dir.
func loadKernels(name, dir string) (*Kernels, error) {
	file, data, err := readIn("kernels", kernelFiles, "kernels", name, dir)
	if err != nil {
		return nil, err
	}
	k := new(Kernels)
	if err := decodeTOML(file, data, k); err != nil {
		return nil, err
	}
	if k.From != "" {
		if err := k.derive(dir); err != nil {
			return nil, placed(file, data, err)
		}
	}
	return k, placed(file, data, k.validate())
}

// derive fills the tables that k lacks from the costs of the kernels file k.From, scaled to this
// file's card.
func (k *Kernels) derive(dir string) error {
	base, err := loadKernels(k.From, dir)
	if err != nil {
		return &keyError{"from", err}
	}
	there, err := LoadCard(inFolder(base.MeasuredOn, dir))
	if err != nil {
		return fmt.Errorf("kernels %s: measured_on: %w", base.Name, err)
	}
	here, err := LoadCard(inFolder(k.MeasuredOn, dir))
	if err != nil {
		return &keyError{"measured_on", err}
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

func (k *Kernels) validate() error {
	switch {
	case k.Name == "":
		return wrong("name", "want a name")
	case k.MeasuredOn == "":
		return wrong("measured_on", "want the card on which these costs were measured")
	}
	return cmp.Or(checkFigures(k), k.KernelCosts.validate())
}

// checked is a pointer to a type with validation.
type checked[T any] interface {
	*T
	// validate returns an error for the first wrong key.
	validate() error
}

// load reads and validates a built-in file by name, or the file at a path.
func load[T any, P checked[T]](kind string, files embed.FS, folder, nameOrPath string) (*T, error) {
	file, data, err := readIn(kind, files, folder, nameOrPath, "")
	if err != nil {
		return nil, err
	}
	return parse[T, P](file, data)
}

// parse decodes and validates a file's text.
func parse[T any, P checked[T]](file string, data []byte) (*T, error) {
	v := new(T)
	if err := decodeTOML(file, data, v); err != nil {
		return nil, err
	}
	return v, placed(file, data, P(v).validate())
}

// readIn returns a built-in file by name, or the file at a path relative to dir.
func readIn(kind string, builtIn embed.FS, folder, nameOrPath, dir string) (
	file string, data []byte, err error) {
	file = folder + "/" + nameOrPath + ".toml"
	if data, err := builtIn.ReadFile(file); err == nil {
		return file, data, nil
	}
	if !LooksLikePath(nameOrPath) {
		if _, err := os.Stat(nameOrPath); err != nil {
			return "", nil, unknownName(kind, nameOrPath, names(builtIn, folder))
		}
	}
	path := nameOrPath
	if dir != "" && !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		return "", nil, fmt.Errorf("%s: %s: want a regular file", kind, path)
	}
	if err == nil {
		data, err = files.ReadText(path)
	}
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", kind, err)
	}
	return path, data, nil
}

// placed adds file and line to a validation error.
func placed(file string, data []byte, err error) error {
	if err == nil {
		return nil
	}
	var at *keyError
	if errors.As(err, &at) {
		if n := lines.OfTOML(string(data)).Of(at.path); n > 0 {
			return fmt.Errorf("%s:%d: %w", file, n, err)
		}
	}
	return fmt.Errorf("%s: %w", file, err)
}
