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

// Draw writes one file per figure and format (png, svg, pdf; PNG by default) into dir and returns
// the paths of the pictures. The numbers of all figures are in one CSV. It is an error if that file
// exists and is not a CSV of pictures.
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
		if names[path] {
			return nil, fmt.Errorf("%s: two pictures have this name", path)
		}
		names[path] = true
	}
	table := filepath.Join(dir, NumbersFile)
	if text := numbers(figures); text != nil {
		if err := replaceable(table); err != nil {
			return nil, err
		}
		if err := writeFile(table, text); err != nil {
			return nil, err
		}
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

// write writes a figure to path.FORMAT for each format.
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
	return paths, nil
}

// replaceable returns an error if the file exists and is not a CSV of pictures.
func replaceable(path string) error {
	text, err := files.ReadResult(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && !strings.HasPrefix(string(text), strings.Join(numberColumns, ",")+"\n") {
		err = fmt.Errorf("%s: is not of pictures, whose numbers would replace it; choose another "+
			"folder", path)
	}
	return err
}

// writeFile writes a file atomically.
func writeFile(path string, data []byte) error {
	return renameio.WriteFile(path, data, 0o644, renameio.WithTempDir(filepath.Dir(path)))
}
