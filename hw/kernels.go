package hw

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
)

//go:embed kernels/*.toml
var kernelFiles embed.FS

// Kernels are the costs of a library's kernels as they were measured on one card.
type Kernels struct {
	Name  string `toml:"name"`
	Title string `toml:"title"`
	// From names the kernels/ file whose costs, on this file's card, these replace table by
	// table; empty: the file has them all.
	From       string     `toml:"from,omitempty"`
	MeasuredOn string     `toml:"measured_on"` // the card, a name or file as of Card.Kernels
	Provenance Provenance `toml:"provenance"`

	KernelCosts
}

// KernelNames lists the built-in files of kernels.
func KernelNames() []string { return names(kernelFiles, "kernels") }

// loadKernels reads a built-in file of kernels, or one in the folder dir.
func loadKernels(name, dir string) (*Kernels, error) {
	file, data, err := readIn("kernels", kernelFiles, "kernels", name, dir)
	if err != nil {
		return nil, err
	}
	k := new(Kernels)
	ix, err := decodeTOML(file, data, k)
	if err != nil {
		return nil, err
	}
	if k.From != "" {
		own := *k
		base, err := loadKernels(k.From, dir)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: from: %w", file, ix.line("from"), err)
		}
		if base.From != "" {
			return nil, fmt.Errorf("%s:%d: from: want a file that has all costs itself", file, ix.line("from"))
		}
		there, err := LoadCard(inFolder(base.MeasuredOn, dir))
		if err != nil {
			return nil, fmt.Errorf("kernels %s: measured_on: %w", base.Name, err)
		}
		here, err := LoadCard(inFolder(k.MeasuredOn, dir))
		if err != nil {
			return nil, fmt.Errorf("%s:%d: measured_on: %w", file, ix.line("measured_on"), err)
		}
		k.KernelCosts = base.KernelCosts.on(there, here)
		k.replace(&own.KernelCosts)
	}
	return k, ix.place(file, k.validate)
}

// replace takes every table that other gives.
func (k *KernelCosts) replace(other *KernelCosts) {
	dst, src := reflect.ValueOf(k).Elem(), reflect.ValueOf(other).Elem()
	for i := range src.NumField() {
		if f := src.Field(i); !f.IsZero() {
			dst.Field(i).Set(f)
		}
	}
}

func (k *Kernels) validate() (path string, err error) {
	switch {
	case k.Name == "":
		return "name", errors.New("want a name")
	case k.MeasuredOn == "":
		return "measured_on", errors.New("want the card on which these costs were measured")
	}
	if path, err := checkFigures(reflect.ValueOf(*k), "", ""); err != nil {
		return path, err
	}
	return k.KernelCosts.validate()
}

// readNamed returns a built-in file by name, or the file of that path.
func readNamed(kind string, files embed.FS, folder, nameOrPath string) (file string, data []byte, err error) {
	return readIn(kind, files, folder, nameOrPath, "")
}

// readIn is readNamed with paths that are relative to dir.
func readIn(kind string, files embed.FS, folder, nameOrPath, dir string) (file string, data []byte, err error) {
	file = folder + "/" + nameOrPath + ".toml"
	if data, err := files.ReadFile(file); err == nil {
		return file, data, nil
	}
	if !looksLikePath(nameOrPath) {
		if _, err := os.Stat(nameOrPath); err != nil {
			return "", nil, unknownName(kind, nameOrPath, names(files, folder))
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
		data, err = os.ReadFile(path)
	}
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", kind, err)
	}
	return path, data, nil
}

// place adds file and line to an error of a file's validation.
func (ix lineIndex) place(file string, validate func() (string, error)) error {
	path, err := validate()
	if err == nil {
		return nil
	}
	if n := ix.line(path); n > 0 {
		return fmt.Errorf("%s:%d: %s: %w", file, n, path, err)
	}
	return fmt.Errorf("%s: %s: %w", file, strings.TrimPrefix(path, "."), err)
}
