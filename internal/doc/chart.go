package doc

import (
	"cmp"
	"fmt"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/sparseserve/sparseserve/internal/stats"
)

// Figure is a group of charts under one caption, written as one picture file.
type Figure struct {
	Name    string   `json:"name"` // of the file, without its extension
	Title   string   `json:"title,omitempty"`
	Caption string   `json:"caption,omitempty"` // what was run, and what intervals are
	Charts  []*Chart `json:"charts"`
	// Minor marks one of many similar figures. A page shows only the first few.
	Minor bool `json:"minor,omitempty"`
}

// Chart is one panel: lines over x, bars, or a heat map. Bars have parts on top of each other, or
// are changes from 0 as of a tornado.
type Chart struct {
	ID    string `json:"id,omitempty"` // of its element in HTML
	Title string `json:"title"`
	X     string `json:"x"` // labels with units
	Y     string `json:"y"`
	LogX  bool   `json:"logX,omitempty"`
	LogY  bool   `json:"logY,omitempty"`
	Low   bool   `json:"low,omitempty"`   // of half the height
	Whole bool   `json:"whole,omitempty"` // y counts, so its ticks are whole numbers
	// XEnds are the two ends of the x axis; empty fits the axis to the points.
	XEnds []float64 `json:"xEnds,omitempty"`
	// YEnds are the two ends of the y axis, or of bars. Points above the upper end are marked at it,
	// and longer bars are cut there, with their values; their parts keep their shares. Fit sets them.
	YEnds  []float64 `json:"yEnds,omitempty"`
	Lines  []Line    `json:"lines,omitempty"`
	Bars   []Bar     `json:"bars,omitempty"`
	Levels []float64 `json:"levels,omitempty"` // of y, or of bars
	Heat   *Heat     `json:"heat,omitempty"`
}

// Line returns the line of a name, which it adds if there is none.
func (c *Chart) Line(name string) *Line {
	for i := range c.Lines {
		if c.Lines[i].Name == name {
			return &c.Lines[i]
		}
	}
	c.Lines = append(c.Lines, Line{Name: name})
	return &c.Lines[len(c.Lines)-1]
}

// Line is one series of points.
type Line struct {
	Name   string  `json:"name"`
	Color  string  `json:"color"` // #rrggbb
	Dashed bool    `json:"dashed,omitempty"`
	Bare   bool    `json:"bare,omitempty"` // without markers
	Dots   bool    `json:"dots,omitempty"` // without a line
	Points []Point `json:"points"`
}

// Point is a value, or a mean over runs.
type Point struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
	Sample
	Note string `json:"note,omitempty"` // beside a dot
}

// Bar is one bar of stacked parts. Its Sample describes the whole bar.
type Bar struct {
	Group string `json:"group,omitempty"` // bars of one group stand together
	Name  string `json:"name"`            // empty if the group's name suffices
	Note  string `json:"note,omitempty"`  // at its end; empty for its value
	Parts []Part `json:"parts"`
	Sample
	// Published is the value that a paper reports.
	Published *float64 `json:"published,omitempty"`
}

// Doubt sets the note of a bar with caveats to its value and them.
func (b *Bar) Doubt() {
	if doubts := b.Doubts(); len(doubts) > 0 {
		b.Note = stats.Digits(b.Value()) + ", " + strings.Join(doubts, ", ")
	}
}

// Label returns the bar's group and name.
func (b *Bar) Label() string {
	return strings.Trim(b.Group+", "+b.Name, ", ")
}

// Value returns the bar's length.
func (b *Bar) Value() float64 {
	sum := 0.0
	for i := range b.Parts {
		sum += b.Parts[i].Value
	}
	return sum
}

// Part is a part of a bar.
type Part struct {
	Name  string  `json:"name"`
	Color string  `json:"color"`
	Value float64 `json:"value"`
	Sample
}

// Heat is a heat map of two knobs. Cells without a value are omitted.
type Heat struct {
	A       string     `json:"a"`
	B       string     `json:"b"`
	ValuesA []string   `json:"valuesA"`
	ValuesB []string   `json:"valuesB"`
	Cells   []HeatCell `json:"cells"`
	Higher  bool       `json:"higher"` // is better
}

// HeatCell is one cell of a heat map. X and Y are indices of values of A and B.
type HeatCell struct {
	X      int     `json:"x"`
	Y      int     `json:"y"`
	Value  float64 `json:"value"`
	Change float64 `json:"change"` // %
}

// Values calls do for each value of the chart, with its series and its x, both as text.
func (c *Chart) Values(do func(series, x string, value float64, s *Sample)) {
	for i := range c.Lines {
		for j := range c.Lines[i].Points {
			p := &c.Lines[i].Points[j]
			do(c.Lines[i].Name, stats.Exact(p.X), p.Y, &p.Sample)
		}
	}
	for i := range c.Bars {
		if v := c.Bars[i].Published; v != nil {
			do(Published, c.Bars[i].Group, *v, &Sample{})
		}
	}
	for i := range c.Bars {
		b := &c.Bars[i]
		of := strings.TrimPrefix(b.Name+": ", ": ")
		for j := range b.Parts {
			p := &b.Parts[j]
			do(strings.TrimSuffix(of, p.Name+": ")+p.Name, b.Group, p.Value, &p.Sample)
		}
		if len(b.Parts) > 1 {
			do(of+"total", b.Group, b.Value(), &b.Sample)
		}
	}
	if h := c.Heat; h != nil {
		for _, x := range h.Cells {
			do(h.A+" = "+h.ValuesA[x.X], h.B+" = "+h.ValuesB[x.Y], x.Value, &Sample{})
		}
	}
}

// FileName converts a label to a file name.
func FileName(label string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("._+-=", r) || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' ||
			'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, label)
}

// Sample describes the runs behind a mean.
type Sample struct {
	N int `json:"n,omitempty"` // runs; 0 of a value that is no mean
	// Low and High are the ends of the mean's 95 % interval; nil if it has none.
	Low  *float64 `json:"low,omitempty"`
	High *float64 `json:"high,omitempty"`
	// Runs are the values of single runs. They are shown instead of the interval if there are fewer
	// than Fewest.
	Runs []float64 `json:"runs,omitempty"`
	Caveats
}

// Caveats are the reasons to doubt a mean.
type Caveats struct {
	Unstable bool `json:"unstable,omitempty"` // the queue of a run grew without end
	// Grows is set if waits grew in a run that is too short to tell whether its queue is unstable.
	Grows bool `json:"grows,omitempty"`
	// Rejects is set if a run rejected requests, so the mean covers only the others.
	Rejects bool `json:"rejects,omitempty"`
}

// Add adds the caveats of another mean.
func (c *Caveats) Add(other Caveats) {
	c.Unstable, c.Grows = c.Unstable || other.Unstable, c.Grows || other.Grows
	c.Rejects = c.Rejects || other.Rejects
}

// Doubts lists the caveats in words.
func (c *Caveats) Doubts() (words []string) {
	if c.Unstable {
		words = append(words, "unstable queue")
	}
	if c.Grows {
		words = append(words, "waits grow")
	}
	if c.Rejects {
		words = append(words, "requests rejected")
	}
	return words
}

// Fewest is the smallest number of runs for which an interval is shown. With two or three runs the
// interval is wider than the effect.
const Fewest = 5

// Over returns the mean of runs with its Student's t interval. No quantity here can be negative, so
// the interval of a positive mean ends at 0.
func Over(values []float64) (mean float64, s Sample) {
	mean, s.N = stat.Mean(values, nil), len(values)
	if len(values) < 2 {
		return mean, s
	}
	_, half := stats.Mean(values, 0.95)
	low, high := mean-half, mean+half
	if mean >= 0 {
		low = max(low, 0)
	}
	s.Low, s.High = &low, &high
	if len(values) < Fewest {
		s.Runs = values
	}
	return mean, s
}

// Ends returns the ends of the interval, or the mean itself.
func (s *Sample) Ends(mean float64) (low, high float64) {
	if s.Low == nil || s.High == nil {
		return mean, mean
	}
	return *s.Low, *s.High
}

// Shown reports whether the interval is shown.
func (s *Sample) Shown() bool {
	return s.Low != nil && s.High != nil && *s.High > *s.Low && s.Runs == nil
}

// Spread explains the intervals and small dots of a figure, whose means are over several `of` (such
// as runs); "" if every value is a single run.
func (f *Figure) Spread(of string) string {
	least, most, dots := 0, 0, false
	for _, c := range f.Charts {
		c.Values(func(_, _ string, _ float64, s *Sample) {
			if s.N > 1 && s.Low != nil && *s.High > *s.Low {
				least, most = min(cmp.Or(least, s.N), s.N), max(most, s.N)
				dots = dots || s.Runs != nil
			}
		})
	}
	count := fmt.Sprint(least)
	if most > least {
		count += fmt.Sprint(" to ", most)
	}
	text := "Whiskers: 95 %% interval of the mean of %s %s."
	switch {
	case most == 0:
		return ""
	case dots:
		text = "Small dots: each of %s %s; five or more have a 95 %% interval of the mean."
	}
	return fmt.Sprintf(text, count, of)
}

// palette is the colours of series. Dashes distinguish colours of equal lightness.
var palette = []struct {
	color  string
	dashed bool
}{
	{"#1a1a1a", false}, {"#0072b2", true}, {"#e69f00", true}, {"#c62f1f", false}, {"#009e73", true},
	{"#a0609a", true}, {"#7a7a7a", true}, {"#56b4e9", false}, {"#f0e442", false},
}

// Color returns the colour of series n, and whether its line is dashed. Colours repeat after nine.
func Color(n int) (hex string, dashed bool) {
	p := palette[n%len(palette)]
	return p.color, p.dashed || n >= len(palette)
}

// Published is the name of the values of a paper.
const Published = "published"

// Grey is the colour of the reference that series are compared with.
const Grey = "#606060"
