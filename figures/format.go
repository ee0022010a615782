package figures

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"codeberg.org/go-pdf/fpdf"
	"github.com/google/renameio/v2"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgpdf"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/sparseserve/sparseserve/internal/files"
)

// dotsPerInch is the resolution of a PNG.
const dotsPerInch = 220

// formatsOr is the formats asked for, each once, or PNG.
func formatsOr(asked []string) []string {
	if len(asked) == 0 {
		return []string{"png"}
	}
	return unique(asked)
}

// encode has paint draw on a canvas of a format and returns the file. The same picture
// has the same bytes: no date is written into a PDF.
func encode(format string, dpi int, width, height vg.Length, paint func(draw.Canvas)) (
	[]byte, error) {
	var canvas vg.CanvasWriterTo
	switch format {
	case "png":
		canvas = vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(dpi))}
	case "svg":
		canvas = vgsvg.New(width, height)
	case "pdf":
		fpdf.SetDefaultCatalogSort(true)
		fpdf.SetDefaultCreationDate(time.Unix(0, 0).UTC())
		fpdf.SetDefaultModificationDate(time.Unix(0, 0).UTC())
		canvas = vgpdf.New(width, height)
	default:
		return nil, fmt.Errorf("no format %q of pictures; there are png, svg and pdf", format)
	}
	page := draw.NewCanvas(canvas, width, height)
	paint(page)
	var out bytes.Buffer
	_, err := canvas.WriteTo(&out)
	return out.Bytes(), err
}

// writeFormats writes a picture in each format and returns the paths.
func writeFormats(path string, formats []string, dpi int, width, height vg.Length,
	paint func(draw.Canvas)) ([]string, error) {
	var files []string
	for _, format := range formatsOr(formats) {
		data, err := encode(format, dpi, width, height, paint)
		if err != nil {
			return files, err
		}
		if err := writeFile(path+"."+format, data); err != nil {
			return files, err
		}
		files = append(files, path+"."+format)
	}
	return files, nil
}

// writeFile writes a file whole or not at all.
func writeFile(path string, data []byte) error {
	return renameio.WriteFile(path, data, 0o644, renameio.WithTempDir(filepath.Dir(path)))
}

// checkTables refuses tables that no picture has made: they are not replaced.
func checkTables(dir string, pictures []picture) error {
	for i := range pictures {
		path := filepath.Join(dir, pictures[i].file+".csv")
		text, err := files.ReadResult(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if head := strings.Join(tableColumns, ",") + "\n"; !strings.HasPrefix(string(text), head) {
			return fmt.Errorf("%s: is not of a picture, whose figures would replace it; choose another "+
				"folder", path)
		}
	}
	return nil
}

// writeAll writes pictures in the order given. Two of one name would be one.
func writeAll(ctx context.Context, dir string, pictures []picture, formats []string) ([]string,
	error) {
	if err := checkTables(dir, pictures); err != nil {
		return nil, err
	}
	var files, names []string
	for i := range pictures {
		if slices.Contains(names, pictures[i].file) {
			return files, fmt.Errorf("%s: two pictures have this name", filepath.Join(dir, pictures[i].file))
		}
		if err := ctx.Err(); err != nil {
			return files, err
		}
		names = append(names, pictures[i].file)
		paths, err := pictures[i].write(dir, formats)
		if files = append(files, paths...); err != nil {
			return files, err
		}
	}
	return files, nil
}

// FileName makes a file name of a label.
func FileName(text string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("._+-=", r) || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' ||
			'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, text)
}
