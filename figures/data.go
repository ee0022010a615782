package figures

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/internal/doc"
)

// RunsData is what DrawFolders draws of a result folder, as data.
func RunsData(dir, caption string) ([]doc.Figure, error) {
	runs, err := Read(dir)
	if err != nil {
		return nil, err
	}
	pictures, err := picturesOf(dir, runs, caption)
	if err != nil {
		return nil, err
	}
	return dataOf(pictures), nil
}

func dataOf(pictures []picture) []doc.Figure {
	var figures []doc.Figure
	for i := range pictures {
		p := &pictures[i]
		p.bound()
		f := doc.Figure{Name: p.file, Caption: p.captioned()}
		looks := lookOf(p.seriesOf(), p.looks)
		for j := range p.charts {
			f.Charts = append(f.Charts, p.charts[j].data(looks))
		}
		figures = append(figures, f)
	}
	return figures
}

// data is the chart for other media.
func (c *chart) data(looks map[string]look) *doc.Chart {
	title := strings.ReplaceAll(c.title, "\n", " ")
	if len(title) > 3 && title[0] == '(' && title[2:4] == ") " { // a letter of a picture's panels
		title = title[4:]
	}
	one := &doc.Chart{Kind: doc.Lines, Title: title, X: c.x, Y: c.y,
		LogX: c.doubly || c.across != nil && c.across.log, LogY: c.axis.log, Low: c.low,
		Marks: c.marks, Levels: c.levels}
	for i := range c.curves {
		one.Lines = append(one.Lines, c.curves[i].data(looks[c.curves[i].series]))
		for _, q := range c.curves[i].points {
			if q.mean > c.axis.high {
				one.Top = short6(c.axis.high)
			}
		}
	}
	for _, g := range c.groups {
		for j := range g.bars {
			one.Bars = append(one.Bars, g.bars[j].data(g.label, len(c.groups) > 1, looks))
		}
	}
	if len(one.Bars) > 0 {
		one.Kind = doc.Bars
	}
	return one
}

func (c *curve) data(l look) doc.Line {
	line := doc.Line{Name: c.series, Color: hex(l.color), Dashed: len(l.dashes) > 0, Bare: c.bare,
		Dots: c.dots || c.hollow}
	for _, q := range c.points {
		p := doc.Point{X: short6(q.x), Y: short6(q.mean)}
		p.Low, p.High = q.ends()
		for _, v := range q.values {
			p.Runs = append(p.Runs, short6(v))
		}
		switch {
		case q.unstable && q.rejects:
			p.Note = "unstable queue, requests rejected"
		case q.unstable:
			p.Note = "unstable queue"
		case q.rejects:
			p.Note = "requests rejected"
		}
		line.Points = append(line.Points, p)
	}
	return line
}

// ends are those of the interval; nil where it has none.
func (q *point) ends() (low, high *float64) {
	if !(q.high > q.low) || q.values != nil {
		return nil, nil
	}
	l, h := short6(q.low), short6(q.high)
	return &l, &h
}

func (b *bar) data(group string, several bool, looks map[string]look) doc.Bar {
	names := []string{b.series}
	if several && group != "" {
		names = []string{group, b.series}
	}
	out := doc.Bar{Name: strings.Join(slices.DeleteFunc(names, func(s string) bool { return s == "" }),
		", ")}
	if out.Name == "" {
		out.Name = group
	}
	for i := range b.parts {
		p := &b.parts[i]
		one := doc.Part{Name: p.series, Color: hex(looks[p.series].color), Value: short6(p.mean)}
		one.Low, one.High = p.ends()
		out.Parts = append(out.Parts, one)
	}
	h := b.height()
	for _, v := range h.values {
		out.Runs = append(out.Runs, short6(v))
	}
	return out
}

// short6 is six digits of a number: more than a page shows.
func short6(v float64) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	unit := math.Pow(10, 5-math.Floor(math.Log10(math.Abs(v))))
	if math.IsInf(unit, 0) {
		return v
	}
	return math.Round(v*unit) / unit
}

func hex(c color.Color) string {
	if c == nil {
		return "#7a7a7a"
	}
	r, g, b, _ := c.RGBA()
	return fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8)
}
