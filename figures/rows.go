package figures

import (
	"cmp"
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
	bars         []doc.Bar
	base         float64   // start of the bars
	low, high    float64   // of the axis
	most         float64   // upper limit of the quantity, as 100 for shares in %
	cut          float64   // where longer bars end
	levels       []float64 // dashed lines
	group, name  vg.Length // of names
	width        vg.Length // of bars and their notes
}

// ofPaper is the look of a value of a paper.
var ofPaper = look{color: color.Gray{0x50}, marker: diamond}

// rowsOf lays out charts of bars and effects, and their colour legend.
func rowsOf(charts []*doc.Chart) (panels []block, legend []entry) {
	group, name := vg.Length(0), vg.Length(0)
	for _, c := range charts {
		p := &rowPanel{title: c.Title, label: c.Y, bars: c.Bars, base: c.Base, levels: c.Levels,
			most: math.Inf(1), cut: math.Inf(1), width: rowWidth}
		if doc.Fit(c); len(c.YEnds) == 2 {
			p.cut = c.YEnds[1]
		}
		if c.X != "" { // the quantity of the groups
			p.label += ", by " + c.X
		}
		if c.Kind == doc.Effects {
			p.addEffects(c.Effects)
		}
		drawn := map[string]bool{} // parts
		for i := range p.bars {
			for _, part := range p.bars[i].Parts {
				drawn[part.Name] = drawn[part.Name] || part.Value != 0
			}
		}
		for i := range p.bars {
			b := &p.bars[i]
			legend = withParts(legend, b, drawn)
			group, name = max(group, widthOf(b.Group)), max(name, widthOf(b.Name))
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

// addEffects adds a bar for each effect, a group per knob. Intervals end at what is possible.
func (p *rowPanel) addEffects(effects []doc.Effect) {
	if strings.HasSuffix(p.label, "(%)") {
		p.most = 100
	}
	for i := range effects {
		e := &effects[i]
		part := doc.Part{Name: "larger, or another value", Color: "#e69f00", Value: e.Value - p.base}
		if e.Below {
			part.Name, part.Color = "smaller than configured", "#0072b2"
		}
		bar := doc.Bar{Group: e.Knob, Note: e.Setting, Parts: []doc.Part{part}}
		if p.base != 0 {
			bar.Note += ", " + signed(e.Change)
		}
		if e.Low != nil && e.High != nil {
			low, high := max(p.base*(1+*e.Low/100), 0), min(p.base*(1+*e.High/100), p.most)
			bar.Sample = doc.Sample{Low: &low, High: &high}
		}
		p.bars = append(p.bars, bar)
	}
}

// groups returns the bars of each group.
func (p *rowPanel) groups() (all [][]doc.Bar) {
	from := 0
	for i := range p.bars {
		of := p.bars[i].Group
		if i+1 == len(p.bars) || of == "" || p.bars[i+1].Group != of {
			all, from = append(all, p.bars[from:i+1]), i+1
		}
	}
	return all
}

// withParts adds the drawn parts of a bar to a legend, except parts named like the bar.
func withParts(legend []entry, b *doc.Bar, drawn map[string]bool) []entry {
	add := func(e entry) {
		if !slices.ContainsFunc(legend, func(o entry) bool { return o.name == e.name }) {
			legend = append(legend, e)
		}
	}
	for _, part := range b.Parts {
		if part.Name != b.Name && drawn[part.Name] {
			add(entry{name: part.Name, look: look{color: colorOf(part.Color)}, kind: boxSample})
		}
	}
	if b.Published != nil {
		add(entry{doc.Published, ofPaper, true, markerSample})
	}
	return legend
}

// intervalOf returns the runs and the interval that are shown for a bar.
func intervalOf(b *doc.Bar) *doc.Sample {
	if len(b.Parts) == 1 && b.Sample.Low == nil {
		return &b.Parts[0].Sample
	}
	return &b.Sample
}

// furthest returns the range of everything drawn for a bar, without its note.
func (p *rowPanel) furthest(b *doc.Bar) (low, high float64) {
	s := intervalOf(b)
	all := append([]float64{p.base + b.Value()}, s.Runs...)
	if s.Shown() {
		all = append(all, *s.Low, *s.High)
	}
	if b.Published != nil {
		all = append(all, *b.Published)
	}
	return slices.Min(all), min(p.cut, slices.Max(all))
}

func (p *rowPanel) noteOf(b *doc.Bar) string {
	note := cmp.Or(b.Note, stats.Digits(b.Value()))
	if p.base+b.Value() > p.cut {
		note += " (cut)"
	}
	return note
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
	for i := range p.bars {
		b := &p.bars[i]
		low, high := p.furthest(b)
		p.low, p.high = min(p.low, low), max(p.high, high)
		if width := style.Width(p.noteOf(b)) + 8; b.Value() < 0 {
			left = max(left, width)
		} else {
			right = max(right, width)
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
