package figures

import (
	"image/color"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// look is how one series is drawn: distinguished by colour, lightness, marker,
// dashes and hatching alike, so that it survives a greyscale printer.
type look struct {
	color    color.Color
	marker   marker
	dashes   []vg.Length
	width    vg.Length
	hatching vg.Length // distance of hatching lines in bars; 0 = none
}

// fill is the colour of a bar.
func (l look) fill() color.Color { return l.color }

// marker draws the outline of a symbol of radius r around (0, 0), clockwise.
type marker func(r vg.Length) []vg.Point

// looks are given to series that have none of their own, in turn.
func looks() []look {
	return []look{
		{color.RGBA{0x1a, 0x1a, 0x1a, 0xff}, circle, nil, 1.5, 0},
		{color.RGBA{0x00, 0x72, 0xb2, 0xff}, square, []vg.Length{7, 3}, 1.5, 6},
		{color.RGBA{0xe6, 0x9f, 0x00, 0xff}, triangle, []vg.Length{2, 2.5}, 1.8, 0},
		{color.RGBA{0xc6, 0x2f, 0x1f, 0xff}, diamond, nil, 2.2, 4},
		{color.RGBA{0x00, 0x9e, 0x73, 0xff}, down, []vg.Length{8, 2.5, 2, 2.5}, 1.5, 0},
		{color.RGBA{0xa0, 0x60, 0x9a, 0xff}, circle, []vg.Length{4, 2}, 1.5, 8},
		{color.RGBA{0x7a, 0x7a, 0x7a, 0xff}, square, []vg.Length{1.5, 2}, 1.5, 0},
		{color.RGBA{0x56, 0xb4, 0xe9, 0xff}, triangle, nil, 1.5, 0},
		{color.RGBA{0xf0, 0xe4, 0x42, 0xff}, down, nil, 1.5, 5},
	}
}

// lookOf gives each series its own look, or one that is left: no two have the same.
func lookOf(series []string, own map[string]look) map[string]look {
	fixed := systemLooks()
	out := map[string]look{}
	next := 0
	for _, s := range series {
		if l, ok := own[s]; ok {
			out[s] = l
		} else if i, ok := fixed[s]; ok {
			out[s] = nthLook(i)
			next = max(next, len(fixed))
		}
	}
	for _, s := range series {
		if _, ok := out[s]; !ok {
			out[s] = nthLook(next)
			next++
		}
	}
	return out
}

// nthLook returns a look; those after looks have its colours again, with other symbols, hatching
// and dashes: a dash and two dots, a dash and three, and so on.
func nthLook(n int) look {
	all := looks()
	l, round := all[n%len(all)], n/len(all)
	if round == 0 {
		return l
	}
	l.marker, l.hatching = all[(n+round)%len(all)].marker, 8+2*vg.Length(round)
	l.dashes = []vg.Length{9, 2}
	for range round + 1 {
		l.dashes = append(l.dashes, 1.5, 2)
	}
	return l
}

// systemLooks gives the paper's four systems the same look in every figure.
func systemLooks() map[string]int {
	return map[string]int{"vLLM": 0, "vLLM-S": 1, "vLLM-SO": 2, "SparseServe": 3}
}

// label is the paper's name of a system.
func label(system string) string {
	if name, ok := map[string]string{
		"vllm": "vLLM", "vllm-s": "vLLM-S", "vllm-so": "vLLM-SO", "sparseserve": "SparseServe",
		"vllm-so-ft": "vLLM-SO+FT", "vllm-so-ft-wc": "vLLM-SO+FT+WC",
		"vllm-sparse": "vLLM-sparse", "vllm-psa": "PSA", "sparseserve-psa": "SparseServe+PSA",
		"vllm-minference": "vLLM+MInference", "sparseserve-minference": "SparseServe+MInference",
	}[system]; ok {
		return name
	}
	if variant, ok := strings.CutPrefix(system, "sparseserve-"); ok {
		return "SparseServe-" + variant
	}
	return system
}

// short is a label that fits above a bar: "vLLM-SO+FT" stays telling as "SO+FT".
func short(label string) string {
	first, rest, _ := strings.Cut(label, ",")
	if first == "SparseServe" {
		first = "SS"
	}
	first = strings.TrimPrefix(first, "vLLM-")
	if rest != "" {
		return first + "," + rest
	}
	return first
}

// modelLabel is the paper's name of a model.
func modelLabel(model string) string {
	if name, ok := map[string]string{"lwm-7b": "LWM-7B", "llama2-7b": "Llama-2-7B",
		"llama3-8b": "Llama3-8B", "llama3.1-8b": "Llama-3.1-8B"}[model]; ok {
		return name
	}
	return model
}

const markerRadius = 4.2

// drawMarker draws a symbol of radius r at p, filled or hollow.
func drawMarker(c *draw.Canvas, l look, p vg.Point, r vg.Length, hollow bool) {
	var path vg.Path
	for i, q := range l.marker(r) {
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
