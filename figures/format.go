package figures

import (
	"bytes"
	"fmt"
	"time"

	"codeberg.org/go-pdf/fpdf"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgpdf"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Resolutions of a PNG. Text is still legible at the lower one, for pictures that may have many
// rows.
const (
	dotsPerInch = 220
	tableDots   = dotsPerInch * 3 / 5
)

// encode draws the sheet in a format and returns the file. Equal pictures have equal bytes: a PDF
// contains no date.
func (s *sheet) encode(format string) ([]byte, error) {
	var canvas vg.CanvasWriterTo
	switch format {
	case "png":
		canvas = vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(s.width, s.height),
			vgimg.UseDPI(s.dots))}
	case "svg":
		canvas = vgsvg.New(s.width, s.height)
	case "pdf":
		fpdf.SetDefaultCatalogSort(true)
		fpdf.SetDefaultCreationDate(time.Unix(0, 0).UTC())
		fpdf.SetDefaultModificationDate(time.Unix(0, 0).UTC())
		canvas = vgpdf.New(s.width, s.height)
	default:
		return nil, fmt.Errorf("no format %q of pictures; there are png, svg and pdf", format)
	}
	s.paint(draw.NewCanvas(canvas, s.width, s.height))
	var out bytes.Buffer
	_, err := canvas.WriteTo(&out)
	return out.Bytes(), err
}
