package figures

import (
	"image/color"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// look is how one system is drawn: told apart by colour, lightness, marker and
// dashes alike, so that it survives a greyscale printer.
type look struct {
	color  color.Color
	marker marker
	dashes []vg.Length
	width  vg.Length
}

// marker draws the outline of a symbol of radius r around (0, 0), clockwise.
type marker func(r vg.Length) []vg.Point

// looks are given to systems that have none of their own, in turn.
func looks() []look {
	return []look{
		{color.RGBA{0x1a, 0x1a, 0x1a, 0xff}, circle, nil, 1.5},
		{color.RGBA{0x00, 0x72, 0xb2, 0xff}, square, []vg.Length{7, 3}, 1.5},
		{color.RGBA{0xe6, 0x9f, 0x00, 0xff}, triangle, []vg.Length{2, 2.5}, 1.8},
		{color.RGBA{0xc6, 0x2f, 0x1f, 0xff}, diamond, nil, 2.2},
		{color.RGBA{0x00, 0x9e, 0x73, 0xff}, down, []vg.Length{8, 2.5, 2, 2.5}, 1.5},
		{color.RGBA{0xa0, 0x60, 0x9a, 0xff}, circle, []vg.Length{4, 2}, 1.5},
		{color.RGBA{0x7a, 0x7a, 0x7a, 0xff}, square, []vg.Length{1.5, 2}, 1.5},
		{color.RGBA{0x56, 0xb4, 0xe9, 0xff}, triangle, nil, 1.5},
	}
}

// lookOf gives the paper's four systems the same look in every figure, and
// the others what is left.
func lookOf(systems []string) map[string]look {
	all := looks()
	own := map[string]int{"vllm": 0, "vllm-s": 1, "vllm-so": 2, "sparseserve": 3}
	out := map[string]look{}
	next := len(own)
	for _, s := range systems {
		i, ok := own[s]
		if !ok {
			i, next = next, next+1
		}
		out[s] = all[i%len(all)]
	}
	return out
}

// label is the paper's name of a system.
func label(system string) string {
	if name, ok := map[string]string{
		"vllm": "vLLM", "vllm-s": "vLLM-S", "vllm-so": "vLLM-SO", "sparseserve": "SparseServe",
		"vllm-so-ft": "vLLM-SO+FT", "vllm-so-ft-wc": "vLLM-SO+FT+WC",
	}[system]; ok {
		return name
	}
	return system
}

const markerRadius = 4.2

// drawMarker draws a symbol at p, filled or hollow.
func drawMarker(c *draw.Canvas, l look, p vg.Point, hollow bool) {
	var path vg.Path
	for i, q := range l.marker(markerRadius) {
		if i == 0 {
			path.Move(p.Add(q))
		} else {
			path.Line(p.Add(q))
		}
	}
	path.Close()
	c.SetColor(l.color)
	if hollow {
		c.SetColor(color.White)
	}
	c.Fill(path)
	c.SetLineStyle(draw.LineStyle{Color: l.color, Width: 1.5})
	c.Stroke(path)
}
