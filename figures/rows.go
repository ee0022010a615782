package figures

import (
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"

	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/stats"
)

// Sizes of rows in points.
const (
	rowBar   = 15 // of a bar with the space around it
	rowGap   = 9  // between groups
	rowHead  = 26 // of the title
	rowFoot  = 40 // of the axis
	rowWidth = 560
	rowNote  = 11  // text at the end of a bar
	rowMost  = 420 // most width of names; longer ones use a smaller font
	nameGap  = 14  // after names
)

// rowPanel is a panel of horizontal bars, with the names of groups and bars at the left.
type rowPanel struct {
	title, label string
	groups       []rowGroup
	base         float64   // start of the bars
	low, high    float64   // of the axis
	most         float64   // upper limit of the quantity, as 100 for shares in %
	levels       []float64 // dashed lines
	group, name  vg.Length // of names
	width        vg.Length // of bars and their notes
}

type rowGroup struct {
	name string
	rows []lyingBar
}

// lyingBar is a horizontal bar of parts that starts at the base.
type lyingBar struct {
	name      string
	parts     []barPart
	low, high float64   // of its interval
	runs      []float64 // instead of an interval
	published *float64
	note      string
}

type barPart struct {
	color color.Color
	value float64
}

// rowLooks are the looks of settings below the configured value, of other settings, and of a paper.
var rowLooks = [3]look{
	{color: color.RGBA{0x00, 0x72, 0xb2, 0xff}},
	{color: color.RGBA{0xe6, 0x9f, 0x00, 0xff}},
	{color: color.Gray{0x50}, marker: diamond},
}

// rowsOf lays out charts of bars and effects, and their colour legend.
func rowsOf(charts []*doc.Chart) (panels []block, legend []entry) {
	group, name := vg.Length(0), vg.Length(0)
	for _, c := range charts {
		p := &rowPanel{title: c.Title, label: c.Y, base: c.Base, levels: c.Levels,
			most: math.Inf(1), width: rowWidth}
		if c.X != "" { // the quantity of the groups
			p.label += ", by " + c.X
		}
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
		for _, g := range p.groups {
			group = max(group, widthOf(g.name))
			for _, b := range g.rows {
				name = max(name, widthOf(b.name))
			}
		}
		panels = append(panels, p)
	}
	for _, b := range panels {
		p := b.(*rowPanel)
		p.group, p.name = min(group, rowMost), min(name, rowMost)
		p.span()
	}
	return panels, legend
}

// widthOf returns the width of a name with the space after it.
func widthOf(name string) vg.Length {
	if name == "" {
		return 0
	}
	return rowStyle().Width(name) + nameGap
}

// rowStyle is the style of left-aligned text beside rows and cells.
func rowStyle() text.Style {
	return text.Style{Color: color.Black, Font: sans(12), YAlign: text.YCenter,
		Handler: plot.DefaultTextHandler}
}

// narrow fits the panel to a width. Bars get the greater part.
func (p *rowPanel) narrow(width vg.Length) {
	if names := p.group + p.name; names > 0.55*width {
		p.group, p.name = p.group*0.55*width/names, p.name*0.55*width/names
	}
	p.width = width - p.group - p.name
	p.span()
}

// addEffects adds a group of rows per knob.
func (p *rowPanel) addEffects(effects []doc.Effect) {
	for i := range effects {
		e := &effects[i]
		own := rowLooks[1].color
		if e.Below {
			own = rowLooks[0].color
		}
		bar := lyingBar{parts: []barPart{{own, e.Value - p.base}}, low: e.Value, high: e.Value,
			note: e.Setting}
		if p.base != 0 {
			bar.note += ", " + signed(e.Change)
		}
		if e.Low != nil && e.High != nil { // within the possible range
			bar.low = max(p.base*(1+*e.Low/100), 0)
			bar.high = min(p.base*(1+*e.High/100), p.most)
		}
		p.add(e.Knob, bar)
	}
}

// add appends a row to the last group, or starts a new group.
func (p *rowPanel) add(group string, bar lyingBar) {
	if n := len(p.groups); n == 0 || p.groups[n-1].name != group {
		p.groups = append(p.groups, rowGroup{name: group})
	}
	g := &p.groups[len(p.groups)-1]
	g.rows = append(g.rows, bar)
}

// addBars adds a row for each bar. It adds the parts to the legend, except parts named like their
// bar.
func (p *rowPanel) addBars(bars []doc.Bar, legend []entry) []entry {
	drawn := map[string]bool{} // parts
	for i := range bars {
		for _, part := range bars[i].Parts {
			drawn[part.Name] = drawn[part.Name] || part.Value > 0
		}
	}
	for i := range bars {
		b := &bars[i]
		bar, sum := lyingBar{name: b.Name, note: b.Note, published: b.Published}, 0.0
		interval := &b.Sample
		for j := range b.Parts {
			part := &b.Parts[j]
			own := colorOf(part.Color)
			if at := slices.IndexFunc(legend, func(e entry) bool { return e.name == part.Name }); at >= 0 {
				own = legend[at].look.color
			} else if part.Name != b.Name && drawn[part.Name] {
				legend = append(legend, entry{name: part.Name, look: look{color: own}, kind: boxSample})
			}
			bar.parts = append(bar.parts, barPart{own, part.Value})
			if sum += part.Value; len(b.Parts) == 1 && interval.Low == nil {
				interval = &part.Sample
			}
		}
		bar.low, bar.high = sum, sum
		if bar.runs = interval.Runs; interval.Shown() {
			bar.low, bar.high = *interval.Low, *interval.High
		}
		if b.Published != nil && !slices.ContainsFunc(legend, isPublished) {
			legend = append(legend, entry{doc.Published, rowLooks[2], true, markerSample})
		}
		if bar.note == "" {
			bar.note = stats.Digits(sum)
		}
		if b.Group == "" {
			p.groups = append(p.groups, rowGroup{rows: []lyingBar{bar}})
		} else {
			p.add(b.Group, bar)
		}
	}
	return legend
}

func isPublished(e entry) bool { return e.name == doc.Published }

// end returns the value at which the bar ends.
func (b *lyingBar) end(base float64) float64 {
	for _, part := range b.parts {
		base += part.value
	}
	return base
}

// furthest returns the range of everything drawn for the bar, without its note.
func (b *lyingBar) furthest(base float64) (low, high float64) {
	end := b.end(base)
	all := append([]float64{end, b.low, b.high}, b.runs...)
	if b.published != nil {
		all = append(all, *b.published)
	}
	return slices.Min(all), slices.Max(all)
}

// span sets an axis that holds all bars, intervals, levels and notes.
func (p *rowPanel) span() {
	p.low, p.high = p.base, p.base
	for _, level := range p.levels {
		p.high = max(p.high, level)
	}
	left, right := vg.Length(0), vg.Length(0)
	style := rowStyle()
	style.Font.Size = rowNote
	for _, g := range p.groups {
		for i := range g.rows {
			b := &g.rows[i]
			low, high := b.furthest(p.base)
			p.low, p.high = min(p.low, low), max(p.high, high)
			if width := style.Width(b.note) + 8; b.end(p.base) < p.base {
				left = max(left, width)
			} else {
				right = max(right, width)
			}
		}
	}
	room := p.high - p.low
	switch {
	case room > 0:
	case p.high == 0: // all values are 0
		room = min(1, p.most)
	default: // no setting has an effect
		room = 0.1 * math.Abs(p.high)
	}
	if over := (left + right) / (0.6 * p.width); over > 1 { // leave the rest to the bars
		left, right = left/over, right/over
	}
	scale := room / float64(p.width-left-right)
	p.low, p.high = p.low-scale*float64(left), p.low+room+scale*float64(right)
}
