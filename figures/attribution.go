package figures

import (
	"cmp"
	"image/color"
	"slices"
	"strconv"

	"gonum.org/v1/plot/vg"
)

// phase is one of the phases that a step's time is split into.
type phase struct {
	key, name string
	look      look
}

// phases are in the order in which bars stack them.
func phases() []phase {
	at := func(r, g, b uint8, hatching vg.Length) look {
		return look{color: color.RGBA{r, g, b, 0xff}, hatching: hatching}
	}
	return []phase{
		{"linears", "linears", at(0x2b, 0x4c, 0x7e, 0)},
		{"prefill_attention", "prefill attention", at(0x8f, 0xb4, 0xd9, 0)},
		{"dense_attention", "dense attention", at(0x56, 0x9a, 0x7a, 7)},
		{"sparse_attention", "sparse attention", at(0xb5, 0xdd, 0xb0, 0)},
		{"scoring", "scoring", at(0xf2, 0xe2, 0x8a, 0)},
		{"load_stall", "loads, exposed", at(0xc6, 0x2f, 0x1f, 0)},
		{"save_stall", "saves, exposed", at(0xf0, 0xa0, 0x90, 5)},
		{"head", "LM head", at(0xa0, 0x60, 0x9a, 0)},
		{"host", "host", at(0xc8, 0xc8, 0xc8, 0)},
	}
}

// attribution draws where the time of the mean step went, a bar for each system
// at each rate, a picture for each model.
func attribution(ps []panel) []picture {
	var pictures []picture
	for _, p := range ps {
		c := chart{x: p.loadLabel(), y: "Time per step (ms)"}
		if len(ps) > 1 {
			c.title = modelLabel(p.model)
		}
		var rates []float64
		var systems []string
		for i := range p.runs {
			r := &p.runs[i]
			if r.Steps > 0 && len(r.PhaseS) > 0 {
				rates, systems = append(rates, load(r)), append(systems, r.System)
			}
		}
		slices.Sort(rates)
		for _, rate := range slices.Compact(rates) {
			g := group{label: strconv.FormatFloat(rate, 'g', -1, 64)}
			for _, system := range unique(systems) {
				if b, ok := phaseBar(p.runs, system, rate); ok {
					g.bars = append(g.bars, b)
				}
			}
			c.groups = append(c.groups, g)
		}
		if len(c.groups) == 0 {
			continue
		}
		c.axis = linear(cut(barSpan(c.groups), c.groups))
		c.axis.high = roomForNotes(c.groups, c.axis.high)
		pic := picture{file: "time", charts: []chart{c}, looks: map[string]look{}, wide: max(1, float64(len(c.groups)*len(c.groups[0].bars))/14)}
		if len(ps) > 1 {
			pic.file += "-" + p.model
		}
		for _, ph := range phases() {
			pic.looks[ph.name] = ph.look
		}
		pictures = append(pictures, pic)
	}
	return pictures
}

// phaseBar stacks the mean phases of a step over the seeds.
func phaseBar(runs []Run, system string, rate float64) (bar, bool) {
	b := bar{series: label(system), note: short(label(system))}
	for _, ph := range phases() {
		var values []float64
		for i := range runs {
			if r := &runs[i]; r.System == system && load(r) == rate && r.Steps > 0 {
				values = append(values, 1e3*r.PhaseS[ph.key]/r.Steps)
			}
		}
		if len(values) == 0 {
			return b, false
		}
		b.parts = append(b.parts, part{ph.name, summarise(rate, values, false)})
	}
	var totals []float64
	for i := range runs {
		if r := &runs[i]; r.System == system && load(r) == rate && r.Steps > 0 {
			totals = append(totals, stepTime(r))
		}
	}
	total := summarise(rate, totals, false)
	b.total = &total
	return b, true
}

// cut ends the axis at four times the median bar, so that a system that has
// collapsed does not flatten the others; its bar runs out of the panel.
func cut(s span, groups []group) span {
	var heights []float64
	for _, g := range groups {
		for i := range g.bars {
			heights = append(heights, g.bars[i].height().mean)
		}
	}
	slices.SortFunc(heights, cmp.Compare[float64])
	s.high = min(s.high, 4*heights[len(heights)/2])
	return s
}

// roomForNotes returns an end of the axis, high or above, at which the texts over
// the bars that end below high fit into the panel upright. Short ones are horizontal.
func roomForNotes(groups []group, high float64) float64 {
	const axisLength = 0.7 * panelHeight // the rest is legend and labels
	room, few := high, noteStyle().Width("SO+FT+")
	for _, g := range groups {
		for i := range g.bars {
			b := &g.bars[i]
			h, width := b.height(), noteStyle().Width(b.note)
			if width > few && h.mean <= high {
				share := min(float64((width+6)/axisLength), 0.8)
				room = max(room, max(h.mean, h.high)/(1-share))
			}
		}
	}
	return room
}

func unique(names []string) []string {
	var out []string
	for _, n := range names {
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}
