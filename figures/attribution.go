package figures

import (
	"cmp"
	"image/color"
	"slices"

	"gonum.org/v1/plot/vg"
)

// Phase is one of the phases that a step's time is split into.
type Phase struct {
	Key, Name string
	look      look
}

// Color is its #rrggbb.
func (p *Phase) Color() string { return hex(p.look.color) }

// unsplit is the time of live steps that were not split into phases.
const unsplit = "unsplit"

// timed says whether a run tells where the time of all its steps went. A live run that does not say
// how much was not split has the phases of some steps alone.
func (r *Run) timed() bool {
	_, whole := r.PhaseS[unsplit]
	return r.Steps > 0 && len(r.PhaseS) > 0 && (whole || r.Live == nil)
}

// Phases are in the order in which bars stack them.
func Phases() []Phase {
	at := func(r, g, b uint8, hatching vg.Length) look {
		return look{color: color.RGBA{r, g, b, 0xff}, hatching: hatching}
	}
	return []Phase{
		{"linears", "linears", at(0x2b, 0x4c, 0x7e, 0)},
		{"prefill_attention", "prefill attention", at(0x8f, 0xb4, 0xd9, 0)},
		{"prefill_index", "index of sparse prefill", at(0x8f, 0xb4, 0xd9, 5)},
		{"dense_attention", "dense attention", at(0x56, 0x9a, 0x7a, 7)},
		{"sparse_attention", "sparse attention", at(0xb5, 0xdd, 0xb0, 0)},
		{"scoring", "scoring", at(0xf2, 0xe2, 0x8a, 0)},
		{"load_stall", "loads, exposed", at(0xc6, 0x2f, 0x1f, 0)},
		{"save_stall", "saves, exposed", at(0xf0, 0xa0, 0x90, 5)},
		{"head", "LM head", at(0xa0, 0x60, 0x9a, 0)},
		{"all_reduce", "all-reduce", at(0xd9, 0xa6, 0x5c, 5)},
		{"host", "host", at(0xc8, 0xc8, 0xc8, 0)},
		{unsplit, "steps not split", at(0xff, 0xff, 0xff, 9)},
	}
}

// phasesOf are the phases that took time in a run of some panel: what no bar has is in no legend.
func phasesOf(ps []panel) []Phase {
	return slices.DeleteFunc(Phases(), func(ph Phase) bool {
		took := func(r Run) bool { return r.timed() && r.PhaseS[ph.Key] > 0 }
		return !slices.ContainsFunc(ps, func(p panel) bool { return slices.ContainsFunc(p.runs, took) })
	})
}

// attribution draws where the time of the mean step went, a bar for each series
// at each x, a panel for each model and card.
func attribution(ps []panel, x abscissa) []picture {
	pic := picture{file: "time", looks: map[string]look{}}
	var all []group
	widest := 0
	names, parts := barNames(ps), phasesOf(ps)
	for i, p := range ps {
		c := chart{title: panelTitle(i, len(ps), p.name(ps)), x: x.label, y: "Time per step (ms)"}
		for _, at := range valuesOf(p.runs, x.of) {
			g := group{label: tickLabel(at)}
			if !x.varies {
				g.label, c.x = x.name, ""
			}
			for _, series := range names {
				if b, ok := phaseBar(p.runs, parts, series, x, at); ok {
					g.bars = append(g.bars, b)
				}
			}
			if len(g.bars) > 0 {
				c.groups = append(c.groups, g)
			}
		}
		if len(c.groups) == 0 {
			continue
		}
		all = append(all, c.groups...)
		bars := 0
		for _, g := range c.groups {
			bars = max(bars, len(g.bars))
		}
		widest = max(widest, len(c.groups)*bars)
		pic.charts = append(pic.charts, c)
	}
	if len(pic.charts) == 0 {
		return nil
	}
	for _, ph := range parts {
		pic.looks[ph.Name] = ph.look
	}
	pic.wide = max(1, float64(widest)/barsPerPanel)
	pic.letter(all)
	pic.cutBars()
	return []picture{pic}
}

const (
	barsPerPanel  = 14
	longestOnBars = 14 // characters
)

// barNames lists the series that steps were counted of.
func barNames(ps []panel) []string {
	var names []string
	for _, p := range ps {
		for i := range p.runs {
			if r := &p.runs[i]; r.timed() {
				names = append(names, bySystem(r))
			}
		}
	}
	return unique(names)
}

// letter writes letters above bars whose names are too long to stand there; the legend
// has the names.
func (p *picture) letter(all []group) {
	var names []string
	long := false
	for _, g := range all {
		for _, b := range g.bars {
			names = append(names, b.series)
			long = long || len(short(b.series)) > longestOnBars
		}
	}
	if names = unique(names); !long || len(names) > 26 {
		return
	}
	p.letters = names
	for _, g := range all {
		for i := range g.bars {
			g.bars[i].note = string(rune('A' + slices.Index(names, g.bars[i].series)))
		}
	}
}

// phaseBar stacks the mean phases of a step over the seeds.
func phaseBar(runs []Run, parts []Phase, series string, x abscissa, at float64) (bar, bool) {
	b := bar{series: series, note: short(series)}
	for _, ph := range parts {
		var values []float64
		for i := range runs {
			if r := &runs[i]; bySystem(r) == series && x.of(r) == at && r.timed() {
				values = append(values, 1e3*r.PhaseS[ph.Key]/r.Steps)
			}
		}
		if len(values) == 0 {
			return b, false
		}
		b.parts = append(b.parts, part{ph.Name, summarise(at, values, false)})
	}
	var totals []float64
	for i := range runs {
		if r := &runs[i]; bySystem(r) == series && x.of(r) == at && r.timed() {
			totals = append(totals, stepTime(r))
		}
	}
	total := summarise(at, totals, false)
	b.total = &total
	return b, len(b.parts) > 0
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
	const axisLength = 0.65 * panelHeight // the rest is legend and labels
	room, few := high, noteStyle().Width("SO+FT+")
	for _, g := range groups {
		for i := range g.bars {
			b := &g.bars[i]
			h, width := b.height(), noteStyle().Width(b.note)
			if width > few && h.mean <= high {
				share := min(float64((width+6)/axisLength), 0.8)
				room = max(room, max(h.mean, min(h.high, high))/(1-share))
			}
		}
	}
	if room > high && slices.ContainsFunc(groups, func(g group) bool {
		return slices.ContainsFunc(g.bars, func(b bar) bool {
			m := b.height().mean
			return m > high &&
				m <= room
		})
	}) {
		return roomForNotes(groups, room) // bars that ended above high end below it now
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
