// Package builtin loads the files that the program has by name, and files of the same form by path.
package builtin

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"

	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/tomlfile"
)

// checked is a pointer to a type with validation.
type checked[T any] interface {
	*T
	// Validate returns an error for the first wrong key.
	Validate() error
}

// Load reads and validates a built-in file by name, or the file at a path.
func Load[T any, P checked[T]](kind string, files embed.FS, folder, nameOrPath string) (*T, error) {
	file, text, err := Read(kind, files, folder, nameOrPath, "")
	if err != nil {
		return nil, err
	}
	return Parse[T, P](file, text)
}

// Parse decodes and validates a file's text.
func Parse[T any, P checked[T]](file, text string) (*T, error) {
	v, err := Decode[T](file, text)
	if err != nil {
		return nil, err
	}
	return v, tomlfile.Place(file, text, P(v).Validate())
}

// Decode decodes a file's text. It keeps the value of each text, because a run reads its machine's
// files several times.
func Decode[T any](file, text string) (*T, error) {
	key := decodedKey{reflect.TypeFor[T](), text}
	if known, ok := decoded.Load(key); ok {
		return Clone(known.(*T)), nil
	}
	v := new(T)
	if err := tomlfile.Decode(file, text, v); err != nil {
		return nil, err
	}
	decoded.Store(key, Clone(v))
	return v, nil
}

var decoded sync.Map // decodedKey -> pointer to a value of the key's type

type decodedKey struct {
	of   reflect.Type
	text string
}

// Clone returns a copy that shares no slice with v.
func Clone[T any](v *T) *T {
	own := *v
	unshare(reflect.ValueOf(&own).Elem())
	return &own
}

// unshare copies the slices within a value.
func unshare(v reflect.Value) {
	switch {
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			unshare(v.Field(i))
		}
	case v.Kind() == reflect.Slice && !v.IsNil():
		own := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(own, v)
		v.Set(own)
		for i := range v.Len() {
			unshare(v.Index(i))
		}
	}
}

// Read returns a built-in file by name, or the file at a path relative to dir.
func Read(kind string, builtIn embed.FS, folder, nameOrPath, dir string) (file, text string,
	err error) {
	file = folder + "/" + nameOrPath + ".toml"
	if data, err := builtIn.ReadFile(file); err == nil {
		return file, string(data), nil
	}
	if !LooksLikePath(nameOrPath) {
		own := "a path that ends in .toml"
		if kind == "gpu" {
			own = "a card file of your own, CARD.toml (docs/extending.md shows how to make one)"
		}
		if _, err := os.Stat(nameOrPath); err != nil {
			return "", "", Unknown(kind, nameOrPath, Names(builtIn, folder), "", own)
		}
	}
	path := InFolder(nameOrPath, dir)
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		return "", "", fmt.Errorf("%s: %s: want a regular file", kind, path)
	}
	var data []byte
	if err == nil {
		data, err = files.ReadText(path)
	}
	if err != nil {
		return "", "", fmt.Errorf("%s: %w", kind, err)
	}
	return path, string(data), nil
}

// InFolder returns a path relative to dir; a name stays.
func InFolder(name, dir string) string {
	if dir != "" && LooksLikePath(name) && !filepath.IsAbs(name) {
		return filepath.Join(dir, name)
	}
	return name
}

// Names returns the names of a folder's embedded *.toml files, without the suffix.
func Names(files embed.FS, folder string) []string {
	entries, err := files.ReadDir(folder)
	if err != nil {
		panic("builtin: embedded folder " + folder + " is missing: " + err.Error())
	}
	out := make([]string, 0, len(entries))
	for _, e := range entries {
		out = append(out, strings.TrimSuffix(e.Name(), ".toml"))
	}
	return out
}

// LooksLikePath reports whether a text is meant as a path of a model, card or engine, not as a
// name.
func LooksLikePath(s string) bool {
	return strings.ContainsRune(s, os.PathSeparator) || strings.HasSuffix(s, ".json") ||
		strings.HasSuffix(s, ".toml")
}

// Write writes values as TOML files, each atomically.
func Write(values map[string]any) error {
	for file, v := range values {
		text, err := tomlfile.Encode(v)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := files.Write(file, text); err != nil {
			return err
		}
	}
	return nil
}
