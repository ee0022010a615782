package hw

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
)

// Libraries are the keys of a card's [kernels], which engines name.
var Libraries = []string{"sparseserve", "fa2", "fa3"}

// NamedFigure is a figure with its dotted key.
type NamedFigure struct {
	Key string
	Figure
}

// Figures lists the card's figures in the order of its file.
func (c *Card) Figures() []NamedFigure { return figuresOf(reflect.ValueOf(*c), "") }

// Figures lists the engine's figures in the order of its file.
func (e *Engine) Figures() []NamedFigure { return figuresOf(reflect.ValueOf(*e), "") }

func figuresOf(v reflect.Value, path string) (all []NamedFigure) {
	if f, ok := v.Interface().(Figure); ok {
		if f.Set() {
			all = append(all, NamedFigure{path, f})
		}
		return all
	}
	switch v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			all = append(all, figuresOf(v.Index(i), fmt.Sprintf("%s[%d]", path, i))...)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("toml"), ",")
			sub := joinPath(path, name)
			if field.Anonymous {
				sub = path
			}
			all = append(all, figuresOf(v.Field(i), sub)...)
		}
	}
	return all
}

// KernelsOf returns the kernels of a library on the card that gpu names, as measured, and
// whether they were measured on another card.
func (c *Card) KernelsOf(library, gpu string) (k *Kernels, derived bool, err error) {
	file, ok := c.Kernels.of(library)
	if !ok {
		return nil, false, fmt.Errorf("does not run here")
	}
	dir := ""
	if looksLikePath(gpu) {
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
