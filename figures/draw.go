package figures

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"

	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/files"
)

// Draw draws figures into dir, a file each in each of the formats png, svg and pdf, or as PNG, and
// returns the paths of the pictures. Beside a figure with numbers is a CSV of them, which replaces
// none that no picture has made.
func Draw(ctx context.Context, dir string, figures []doc.Figure, formats ...string) (
	paths []string, err error) {
	if len(formats) == 0 {
		formats = []string{"png"}
	}
	slices.Sort(formats)
	formats = slices.Compact(formats)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for i := range figures {
		path := filepath.Join(dir, figures[i].Name)
		if err := replaceable(path + ".csv"); figures[i].Numbers && err != nil {
			return nil, err
		}
		if names[path] {
			return nil, fmt.Errorf("%s: two pictures have this name", path)
		}
		names[path] = true
	}
	for i := range figures {
		if err := ctx.Err(); err != nil {
			return paths, err
		}
		more, err := write(filepath.Join(dir, figures[i].Name), &figures[i], formats)
		if paths = append(paths, more...); err != nil {
			return paths, err
		}
	}
	return paths, nil
}

// write writes a figure and its numbers to files that begin by path.
func write(path string, f *doc.Figure, formats []string) (paths []string, err error) {
	if len(f.Charts) == 0 {
		return nil, nil
	}
	s := layout(f)
	for _, format := range formats {
		data, err := s.encode(format)
		if err == nil {
			err = writeFile(path+"."+format, data)
		}
		if err != nil {
			return paths, err
		}
		paths = append(paths, path+"."+format)
	}
	if f.Numbers {
		err = writeFile(path+".csv", numbers(f))
	}
	return paths, err
}

// replaceable is an error if a file is there that is no CSV of a picture.
func replaceable(path string) error {
	text, err := files.ReadResult(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && !strings.HasPrefix(string(text), strings.Join(numberColumns, ",")+"\n") {
		err = fmt.Errorf("%s: is not of a picture, whose figures would replace it; choose another "+
			"folder", path)
	}
	return err
}

// writeFile writes a file whole or not at all.
func writeFile(path string, data []byte) error {
	return renameio.WriteFile(path, data, 0o644, renameio.WithTempDir(filepath.Dir(path)))
}
