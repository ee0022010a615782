package figures

import (
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/sparseserve/sparseserve/internal/doc"
)

// mostNotes is the most dots with notes; more notes would hide the dots.
const mostNotes = 20

// notes writes the notes of dots beside them. A note that would hide a dot or a note is left out.
func (p *panel) notes(c draw.Canvas, x, y func(float64) vg.Length) {
	var noted []*doc.Point
	for i := range p.Lines {
		for k := range p.Lines[i].Points {
			if q := &p.Lines[i].Points[k]; p.Lines[i].Dots && q.Note != "" {
				noted = append(noted, q)
			}
		}
	}
	if len(noted) > mostNotes {
		return
	}
	style := noteStyle()
	style.Font.Size, style.YAlign = 9.5, text.YCenter
	var taken []vg.Rectangle
	for _, q := range noted {
		taken = append(taken, around(p.at(q, x, y), ringRadius, ringRadius))
	}
	for _, q := range noted {
		width := style.Width(q.Note)/2 + 2
		for _, aside := range []vg.Point{{Y: 11}, {Y: -11}, {X: width + 5}, {X: -width - 5}} {
			at := p.at(q, x, y).Add(aside)
			at.X = min(max(at.X, c.Min.X+width), c.Max.X-width)
			box := around(at, width, 6)
			if box.Min.Y > c.Min.Y && box.Max.Y < c.Max.Y && !meets(box, taken) {
				c.FillText(style, at, q.Note)
				taken = append(taken, box)
				break
			}
		}
	}
}

func around(p vg.Point, width, height vg.Length) vg.Rectangle {
	return vg.Rectangle{Min: vg.Point{X: p.X - width, Y: p.Y - height},
		Max: vg.Point{X: p.X + width, Y: p.Y + height}}
}

func meets(box vg.Rectangle, taken []vg.Rectangle) bool {
	for _, t := range taken {
		if box.Min.X < t.Max.X && t.Min.X < box.Max.X && box.Min.Y < t.Max.Y && t.Min.Y < box.Max.Y {
			return true
		}
	}
	return false
}
