package figures

import (
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"

	"github.com/sparseserve/sparseserve/internal/doc"
)

// Sizes of rows in points.
const (
	rowBar   = 15 // of a bar and the space around it
	rowGap   = 9  // between groups
	rowHead  = 26 // of the title
	rowFoot  = 40 // of the axis
	rowWidth = 560
	rowNote  = 11  // text at the end of a bar
	rowMost  = 420 // of names at most; longer ones are in smaller print
)

// rowPanel is a panel of lying bars, with the names of groups at their left.
type rowPanel struct {
	title, label string
	groups       []rowGroup
	base         float64   // that bars begin at
	low, high    float64   // of the axis
	most         float64   // that is possible, 100 of shares in %
	levels       []float64 // dashed lines
	left, width  vg.Length // of names, and of all
}

type rowGroup struct {
	name string
	rows []lyingBar
}

// lyingBar is a bar of parts, from the base on.
type lyingBar struct {
	parts     []barPart
	low, high float64 // of its interval
	note      string
}

type barPart struct {
	look  look
	value float64
}

// rowLooks are of settings below what the configuration has, and of others.
var rowLooks = [2]look{
	{color: color.RGBA{0x00, 0x72, 0xb2, 0xff}, hatching: 6},
	{color: color.RGBA{0xe6, 0x9f, 0x00, 0xff}},
}

// rowsOf lays out charts of bars and of effects, and lists what their colours mean.
func rowsOf(charts []*doc.Chart) (panels []stacked, legend []entry) {
	left := vg.Length(0)
	var all []*rowPanel
	for _, c := range charts {
		p := &rowPanel{title: c.Title, label: c.Y, base: c.Base, levels: c.Levels, most: math.Inf(1)}
		if strings.HasSuffix(c.Y, "(%)") && c.Kind == doc.Effects {
			p.most = 100
		}
		if c.Kind == doc.Effects {
			p.addEffects(c.Effects)
			legend = []entry{{name: "smaller than configured", look: rowLooks[0], kind: boxSample},
				{name: "larger, or another value", look: rowLooks[1], kind: boxSample}}
		} else {
			legend = p.addBars(c.Bars, legend)
		}
		p.span()
		for _, g := range p.groups {
			left = min(max(left, rowStyle().Width(g.name)+14), rowMost)
		}
		all = append(all, p)
	}
	for _, p := range all {
		p.left, p.width = left, left+rowWidth
		panels = append(panels, p)
	}
	return panels, legend
}

// addEffects adds a group of rows for each knob.
func (p *rowPanel) addEffects(effects []doc.Effect) {
	for i := range effects {
		e := &effects[i]
		if n := len(p.groups); n == 0 || p.groups[n-1].name != e.Knob {
			p.groups = append(p.groups, rowGroup{name: e.Knob})
		}
		own := rowLooks[1]
		if e.Below {
			own = rowLooks[0]
		}
		bar := lyingBar{parts: []barPart{{own, e.Value - p.base}}, low: e.Value, high: e.Value,
			note: e.Setting}
		if p.base != 0 {
			bar.note += ", " + signed(e.Change)
		}
		if e.Low != nil && e.High != nil { // within what is possible
			bar.low = max(p.base*(1+*e.Low/100), 0)
			bar.high = min(p.base*(1+*e.High/100), p.most)
		}
		g := &p.groups[len(p.groups)-1]
		g.rows = append(g.rows, bar)
	}
}

// addBars adds a group of one row for each bar, and what their parts are to the legend.
func (p *rowPanel) addBars(bars []doc.Bar, legend []entry) []entry {
	for i := range bars {
		b := &bars[i]
		bar, sum := lyingBar{note: b.Note}, 0.0
		for _, part := range b.Parts {
			at := slices.IndexFunc(legend, func(e entry) bool { return e.name == part.Name })
			if at < 0 {
				own := look{color: colorOf(part.Color)}
				if at = len(legend); at%2 == 1 { // neighbours differ in grey, too
					own.hatching = 6
				}
				legend = append(legend, entry{name: part.Name, look: own, kind: boxSample})
			}
			bar.parts = append(bar.parts, barPart{legend[at].look, part.Value})
			if sum += part.Value; part.Low != nil && part.High != nil {
				bar.low, bar.high = sum-part.Value+*part.Low, sum-part.Value+*part.High
			}
		}
		if bar.high <= bar.low {
			bar.low, bar.high = sum, sum
		}
		if bar.note == "" {
			bar.note = digits(sum)
		}
		p.groups = append(p.groups, rowGroup{b.Name, []lyingBar{bar}})
	}
	return legend
}

// end is where the bar ends.
func (b *lyingBar) end(base float64) float64 {
	for _, part := range b.parts {
		base += part.value
	}
	return base
}

// span gives the panel an axis that holds its bars, intervals, levels and notes.
func (p *rowPanel) span() {
	p.low, p.high = p.base, p.base
	for _, level := range p.levels {
		p.high = max(p.high, level)
	}
	left, right := vg.Length(0), vg.Length(0)
	style := rowStyle()
	style.Font.Size = rowNote
	for _, g := range p.groups {
		for _, b := range g.rows {
			end := b.end(p.base)
			p.low, p.high = min(p.low, end, b.low), max(p.high, end, b.high)
			if width := style.Width(b.note) + 8; end < p.base {
				left = max(left, width)
			} else {
				right = max(right, width)
			}
		}
	}
	room := p.high - p.low
	switch {
	case room > 0:
	case p.high == 0: // all is 0, and there is nothing to scale by
		room = min(1, p.most)
	default: // nothing has an effect
		room = 0.1 * math.Abs(p.high)
	}
	if over := (left + right) / (0.6 * rowWidth); over > 1 { // the bars have the rest
		left, right = left/over, right/over
	}
	scale := room / float64(rowWidth-left-right)
	p.low, p.high = p.low-scale*float64(left), p.low+room+scale*float64(right)
}
