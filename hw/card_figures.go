package hw

import (
	"fmt"
	"path/filepath"
)

// Libraries are the keys of a card's [kernels]; engines name them.
var Libraries = []string{"sparseserve", "fa2", "fa3"}

// Figures lists the card's figures in the order of its file.
func (c *Card) Figures() []NamedFigure { return figuresOf(c) }

// Figures lists the engine's figures in the order of its file.
func (e *Engine) Figures() []NamedFigure { return figuresOf(e) }

// KernelsOf returns the measured kernels of a library on the card that gpu names, and reports
// whether they were measured on another card.
func (c *Card) KernelsOf(library, gpu string) (k *Kernels, derived bool, err error) {
	file, ok := c.Kernels.of(library)
	if !ok {
		return nil, false, fmt.Errorf("does not run here")
	}
	dir := ""
	if LooksLikePath(gpu) {
		dir = filepath.Dir(gpu)
	}
	if k, err = loadKernels(file, dir); err != nil {
		return nil, false, err
	}
	measured, err := LoadCard(inFolder(k.MeasuredOn, dir))
	if err != nil {
		return nil, false, err
	}
	return k, measured.Name != c.Name, nil
}
