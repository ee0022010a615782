package papers

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/stats"
	"github.com/sparseserve/sparseserve/internal/warn"
)

// panel is a panel of a figure of the papers; figures.toml explains the keys.
type panel struct {
	Title, From, X, Y, Series, Label string

	Where filter
	Names map[string]string
	Over  *struct {
		Where filter
		By    string
	}
	Bars, Doubly bool
	Axis         []float64
	Published    map[string][]float64
}

// drawing is a panel with the rows and names to draw it.
type drawing struct {
	*panel
	figure *paperFigure
	x      *quantity // nil where x is a key
	y      []*quantity
	rows   []record // of the folder
}

// cell holds the rows of a point or bar.
type cell struct {
	series, label string // label of a group of bars
	x             float64
	values        [][]float64 // by row: of each y, and of their sum
	interval      *doc.Sample // that the row has; nil for one over the rows
	doc.Caveats
}

// interval returns the 95 % interval of a row; nil if it has none.
func (q *quantity) interval(r *record, base float64) (*doc.Sample, error) {
	if q.Low == "" || r.cells[q.Low] == "" {
		return nil, nil
	}
	low, err1 := r.number(q.Low)
	high, err2 := r.number(q.High)
	scale := cmp.Or(q.Scale, 1) / base
	low, high = scale*low, scale*high
	return &doc.Sample{N: max(1, len(strings.Fields(r.cells["seeds"]))), Low: &low, High: &high},
		cmp.Or(err1, err2)
}

// chart draws the panel; nil if the rows have nothing to draw.
func (d *drawing) chart() (*doc.Chart, error) {
	cells, err := d.cells()
	if err != nil || len(cells) == 0 {
		return nil, err
	}
	c := &doc.Chart{Title: d.Title, Y: cmp.Or(d.Label, d.y[0].Label),
		LogX: d.Doubly, LogY: d.y[0].Log, YEnds: d.Axis}
	if d.x != nil {
		c.X = d.x.Label
	}
	if d.Bars {
		d.bars(c, cells)
	} else {
		d.lines(c, cells)
	}
	return c, nil
}

// cells groups the rows by point or bar. A cell with a missing seed is left out, because its mean
// would cover other requests than the means next to it.
func (d *drawing) cells() ([]*cell, error) {
	var all []*cell
	most := 0
	for i := range d.rows {
		r := &d.rows[i]
		if !d.Where.takes(r) || r.cells["completed"] == "0" {
			continue
		}
		one, err := d.cell(r)
		if err != nil {
			return nil, err
		}
		if one == nil {
			continue
		}
		at := slices.IndexFunc(all, func(c *cell) bool {
			return c.series == one.series && c.label == one.label && c.x == one.x
		})
		if at < 0 {
			at, all = len(all), append(all, one)
		} else {
			all[at].add(one)
		}
		most = max(most, len(all[at].values[0]))
	}
	return slices.DeleteFunc(all, func(c *cell) bool { return len(c.values[0]) < most }), nil
}

// add adds the rows of another cell for the same point or bar.
func (c *cell) add(other *cell) {
	for i := range c.values {
		c.values[i] = append(c.values[i], other.values[i]...)
	}
	c.Add(other.Caveats)
}

// cell returns the cell of one row; nil if the row has no value to draw.
func (d *drawing) cell(r *record) (*cell, error) {
	base, err := d.base(r)
	if err != nil {
		return nil, err
	}
	kinds := strings.Fields(r.cells["warnings.kind"])
	c := &cell{
		series: d.name(r.texts(d.Series)),
		Caveats: doc.Caveats{Unstable: slices.Contains(kinds, string(warn.UnstableQueue)),
			Grows:   slices.Contains(kinds, string(warn.WaitsGrow)),
			Rejects: cmp.Or(r.cells["rejected"], "0") != "0"},
	}
	if d.Series == "" {
		c.series, _, _ = strings.Cut(d.y[0].Label, " (")
	}
	sum := 0.0
	for _, q := range d.y {
		v, err := q.value(r)
		if err != nil {
			return nil, err
		}
		v /= base
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, nil
		}
		c.values = append(c.values, []float64{v})
		sum += v
	}
	c.values = append(c.values, []float64{sum})
	if c.interval, err = d.y[0].interval(r, base); err != nil {
		return nil, err
	}
	return c, d.place(c, r)
}

// place sets the x or the label of a row's cell.
func (d *drawing) place(c *cell, r *record) (err error) {
	switch {
	case d.x == nil:
		c.label = d.name(r.texts(d.X))
		return nil
	case d.Bars && r.texts(d.x.Of) == "":
		c.label = d.name("")
		return nil
	}
	if c.x, err = d.x.value(r); d.Bars {
		c.label, c.x = stats.Tick(c.x), 0
	}
	return err
}

// base returns the divisor of a row's values: the value of the matching base row; 0 if there is no
// such row.
func (d *drawing) base(r *record) (float64, error) {
	if d.Over == nil {
		return 1, nil
	}
	for i := range d.rows {
		if b := &d.rows[i]; d.Over.Where.takes(b) && b.texts(d.Over.By) == r.texts(d.Over.By) {
			return d.y[0].value(b)
		}
	}
	return 0, nil
}

// name returns the display name of a raw value.
func (d *drawing) name(raw string) string {
	for _, names := range []map[string]string{d.Names, d.figure.Names} {
		if name, ok := names[raw]; ok {
			return name
		}
	}
	return ModelName(SystemName(raw))
}

// mean returns the mean of y number y over the rows. For the last y it is the mean of the sum of
// all.
func (c *cell) mean(y int, most float64) (float64, doc.Sample) {
	mean, s := doc.Over(c.values[y])
	s.Caveats = c.Caveats
	if c.interval != nil {
		s = *c.interval
	}
	if most > 0 && s.High != nil && mean <= most { // ends at the possible values
		high := min(*s.High, most)
		s.High = &high
	}
	return mean, s
}

// lines makes one line per series.
func (d *drawing) lines(c *doc.Chart, cells []*cell) {
	for _, one := range cells {
		mean, s := one.mean(0, d.y[0].Most)
		l := c.Line(one.series)
		l.Points = append(l.Points, doc.Point{X: one.x, Y: mean, Sample: s})
	}
	for text, values := range d.Published {
		x, _ := strconv.ParseFloat(text, 64)
		l := c.Line(doc.Published)
		l.Dots = true
		for _, v := range values {
			l.Points = append(l.Points, doc.Point{X: x, Y: v})
		}
	}
	for i := range c.Lines {
		slices.SortFunc(c.Lines[i].Points,
			func(a, b doc.Point) int { return cmp.Or(cmp.Compare(a.X, b.X), cmp.Compare(a.Y, b.Y)) })
	}
}

// bars makes one bar per cell, grouped by label, in the order of the rows.
func (d *drawing) bars(c *doc.Chart, cells []*cell) {
	order := map[string]int{}
	for _, one := range cells {
		if _, known := order[one.label]; !known {
			order[one.label] = len(order)
		}
	}
	slices.SortStableFunc(cells, func(a, b *cell) int {
		return cmp.Compare(order[a.label], order[b.label])
	})
	nth := 0 // of its group
	for i, one := range cells {
		if nth++; i == 0 || cells[i-1].label != one.label {
			nth = 0
		}
		b := doc.Bar{Group: one.label}
		if d.Series != "" {
			b.Name = one.series
		}
		for j, q := range d.y {
			part := doc.Part{Name: q.Label}
			if len(d.y) == 1 {
				part.Name = one.series
			}
			part.Value, part.Sample = one.mean(j, q.Most)
			b.Parts = append(b.Parts, part)
		}
		_, b.Sample = one.mean(len(d.y), d.y[0].Most)
		b.Doubt()
		if values := d.Published[one.label]; nth < len(values) {
			b.Published = &values[nth]
		}
		c.Bars = append(c.Bars, b)
	}
}
