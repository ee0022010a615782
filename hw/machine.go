package hw

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/hw/builtin"
	"github.com/sparseserve/sparseserve/internal/tomlfile"
)

// Load combines a card with changes, its kernels for an engine, and that engine. gpu and engine are
// built-in names or files.
func Load(gpu, engine string, changes Changes) (*Profile, error) {
	c, err := LoadCard(gpu)
	if err != nil {
		return nil, err
	}
	e, err := LoadEngine(engine)
	if err != nil {
		return nil, err
	}
	if key, err := c.CheckChanges(changes); err != nil {
		return nil, fmt.Errorf("card.%s: %w", key, err)
	}
	k, measured, err := c.kernelsOf(e.Kernels, gpu)
	if errors.Is(err, errNoKernels) {
		return nil, fmt.Errorf("gpu %s has no kernels of %q, which engine %s runs; known: %s; choose "+
			"another engine (list engines), or in a card file set kernels.%s to one of %s", c.Name,
			e.Kernels, e.Name, c.Kernels.known(), e.Kernels, strings.Join(KernelNames(), ", "))
	} else if err != nil {
		return nil, err
	}
	c = c.with(changes)
	p := &Profile{
		Name: c.Name, Title: c.Title, Provenance: k.Provenance, Chip: c.Chip,
		KernelCosts: k.KernelCosts.on(measured, c), EngineCosts: e.EngineCosts.onHost(c.CPU.Speed),
	}
	p.servedBy(e.Program)
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("gpu %s under engine %s: %w", c.Name, e.Name, err)
	}
	return p, nil
}

// errNoKernels is the reason why an engine cannot run on a card.
var errNoKernels = errors.New("does not run here")

// kernelsOf returns the kernels of a library on the card that gpu names, and the card on which they
// were measured.
func (c *Card) kernelsOf(library, gpu string) (k *Kernels, measured *Card, err error) {
	file := ""
	if slices.Contains(Libraries, library) {
		file = tomlfile.Field(&c.Kernels, library).String()
	}
	if file == "" {
		return nil, nil, errNoKernels
	}
	dir := ""
	if builtin.LooksLikePath(gpu) {
		dir = filepath.Dir(gpu)
	}
	if k, err = loadKernels(file, dir); err != nil || k.MeasuredOn == c.Name {
		return k, c, err
	}
	measured, err = k.home(dir)
	return k, measured, err
}

// KernelsOf returns the measured kernels of a library on the card that gpu names, and reports
// whether they were measured on another card.
func (c *Card) KernelsOf(library, gpu string) (k *Kernels, derived bool, err error) {
	k, measured, err := c.kernelsOf(library, gpu)
	return k, err == nil && measured.Name != c.Name, err
}

func (k *KernelFiles) known() string {
	if k.FA3 == "" {
		return "sparseserve, fa2"
	}
	return "sparseserve, fa2, fa3"
}

// Files are the paths that Write writes: the card file and, in the same folder, the kernels that
// the card names, and the engine.
type Files struct{ Card, Kernels, Engine string }

// FilesOf returns the files of the machine whose card file is at path.
func FilesOf(path string) Files {
	stem := strings.TrimSuffix(path, filepath.Ext(path))
	return Files{Card: path, Kernels: stem + "-kernels.toml", Engine: stem + "-engine.toml"}
}

// Write writes a machine as three files, FilesOf(path), each atomically. The engine keeps the
// built-in engine's properties except its costs. Load of these files returns p.
func (p *Profile) Write(path, engine string) error {
	e, err := LoadEngine(engine)
	if err != nil {
		return err
	}
	to := FilesOf(path)
	e.Name, e.EngineCosts = p.Name+"-engine", p.EngineCosts
	kernels := filepath.Base(to.Kernels)
	k := &Kernels{Name: p.Name + "-kernels", Title: "kernels as measured on " + p.Title,
		MeasuredOn: filepath.Base(path), Provenance: p.Provenance, KernelCosts: p.KernelCosts}
	c := &Card{Name: p.Name, Title: p.Title, Kernels: KernelFiles{kernels, kernels, kernels},
		Chip: p.Chip}
	if built, err := LoadCard(p.Name); err == nil && built.Kernels.FA3 != built.Kernels.FA2 {
		c.Kernels.FA3 = built.Kernels.FA3 // no calibration measures it
	}
	if err := c.Validate(); err != nil {
		return fmt.Errorf("refusing to write an invalid card: %w", err)
	}
	if err := p.Validate(); err != nil {
		return fmt.Errorf("refusing to write an invalid machine: %w", err)
	}
	return builtin.Write(map[string]any{to.Kernels: k, to.Engine: e, to.Card: c})
}

// Write writes an engine's file. The engine is named after the file.
func (e *Engine) Write(path, title string) error {
	named := *e
	named.Name, named.Title = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)), title
	return builtin.Write(map[string]any{path: &named})
}

// WriteBuiltIn writes a calibrated machine over the built-in kernels and card of these names in the
// folder dir of this package; an empty card is skipped. Keys that no calibration measures stay.
func (p *Profile) WriteBuiltIn(dir, card, kernels string) error {
	files := map[string]any{}
	if card != "" {
		c, err := LoadCard(card)
		if err != nil {
			return err
		}
		c.GPU, c.Link = p.GPU, p.Link
		files[filepath.Join(dir, "cards", card+".toml")] = c
	}
	k, err := loadKernels(kernels, "")
	if err != nil {
		return err
	}
	k.Provenance, k.KernelCosts = p.Provenance, p.KernelCosts
	files[filepath.Join(dir, "kernels", kernels+".toml")] = k
	return builtin.Write(files)
}
