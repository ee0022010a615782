package figures

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/internal/warn"
)

// quantity is a number of a row; papers.toml explains the keys.
type quantity struct {
	Of, Over, Low, High string
	Scale, Offset, Most float64
	Label               string
	Log, Nonzero        bool
}

// paperPanel is a panel of a figure of the papers; papers.toml explains the keys.
type paperPanel struct {
	Title, From, X, Y, Series, Label string

	Where map[string]any
	Names map[string]string
	Over  *struct {
		Where map[string]any
		By    string
	}
	Bars, Doubly bool
	Axis, Ticks  []float64
	Published    map[string][]float64
}

// publishedSeries are the values that a paper has.
const publishedSeries = "published"

// drawing is a panel and what it is drawn by.
type drawing struct {
	*paperPanel
	figure *paperFigure
	x      *quantity // nil where x is a key
	y      []*quantity
	rows   []record // of the folder
}

// cell has the rows of a point or bar.
type cell struct {
	series, label string // label of a group of bars
	x             float64
	values        [][]float64 // by row: of each y, and of their sum
	interval      *point      // that the row has; nil for one over the rows
	unstable      bool
	rejects       bool
}

// value is the quantity of a row.
func (q *quantity) value(r *record) (float64, error) {
	v, err := r.number(strings.Fields(q.Of)...)
	if err == nil && q.Over != "" {
		var over float64
		over, err = r.number(q.Over)
		v /= over
	}
	return cmp.Or(q.Scale, 1) * (v + q.Offset), err
}

// interval is the mean of a row with the 95 % interval that the row has; nil where it has none.
func (q *quantity) interval(r *record, mean, base float64) (*point, error) {
	if q.Low == "" || r.cells[q.Low] == "" {
		return nil, nil
	}
	low, err1 := r.number(q.Low)
	high, err2 := r.number(q.High)
	scale := cmp.Or(q.Scale, 1) / base
	return &point{runs: max(1, len(strings.Fields(r.cells["seeds"]))), mean: mean,
		low: scale * low, high: scale * high}, cmp.Or(err1, err2)
}

// chart is the panel; it has neither curves nor bars where the rows have nothing to draw.
func (d *drawing) chart() (chart, error) {
	cells, err := d.cells()
	if err != nil || len(cells) == 0 {
		return chart{}, err
	}
	c := chart{title: d.Title, y: cmp.Or(d.Label, d.y[0].Label), ticks: d.Ticks, doubly: d.Doubly,
		most: d.y[0].Most}
	if d.x != nil {
		c.x = d.x.Label
	}
	if d.Bars {
		d.bars(&c, cells)
	} else {
		d.lines(&c, cells)
	}
	if len(d.Axis) == 2 {
		c.axis = axis{d.Axis[0], d.Axis[1], false}
	}
	return c, nil
}

// cells gathers the rows of each point or bar. One that lacks a seed is left out, because its mean
// would be over other requests than the means next to it.
func (d *drawing) cells() ([]*cell, error) {
	var all []*cell
	most := 0
	for i := range d.rows {
		r := &d.rows[i]
		if !r.has(d.Where) || r.cells["completed"] == "0" {
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

// add adds the rows of a cell of the same point or bar.
func (c *cell) add(other *cell) {
	for i := range c.values {
		c.values[i] = append(c.values[i], other.values[i]...)
	}
	c.unstable, c.rejects = c.unstable || other.unstable, c.rejects || other.rejects
}

// cell is the cell of a row alone; nil where the row has no value to draw.
func (d *drawing) cell(r *record) (*cell, error) {
	base, err := d.base(r)
	if err != nil {
		return nil, err
	}
	kinds := strings.Fields(r.cells["warnings.kind"])
	c := &cell{
		series: d.name(r.texts(d.Series)),
		unstable: slices.Contains(kinds, string(warn.UnstableQueue)) ||
			slices.Contains(kinds, string(warn.WaitsGrow)),
		rejects: cmp.Or(r.cells["rejected"], "0") != "0",
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
		if math.IsNaN(v) || math.IsInf(v, 0) || q.Nonzero && v == 0 {
			return nil, nil
		}
		c.values = append(c.values, []float64{v})
		sum += v
	}
	c.values = append(c.values, []float64{sum})
	if c.interval, err = d.y[0].interval(r, sum, base); err != nil {
		return nil, err
	}
	return c, d.place(c, r)
}

// place says where the cell of a row stands: over an x or a label.
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
		c.label, c.x = tickLabel(c.x), 0
	}
	return err
}

// base is what the values of a row are divided by: 0 where no row has it.
func (d *drawing) base(r *record) (float64, error) {
	if d.Over == nil {
		return 1, nil
	}
	for i := range d.rows {
		if b := &d.rows[i]; b.has(d.Over.Where) && b.texts(d.Over.By) == r.texts(d.Over.By) {
			return d.y[0].value(b)
		}
	}
	return 0, nil
}

// name is what legends and labels call a raw value.
func (d *drawing) name(raw string) string {
	for _, names := range []map[string]string{d.Names, d.figure.Names} {
		if name, ok := names[raw]; ok {
			return name
		}
	}
	return modelLabel(label(raw))
}

// mean is the mean of a y over the rows; after the last y, that of their sum.
func (c *cell) mean(y int) point {
	if c.interval != nil {
		q := *c.interval
		q.x = c.x
		return q
	}
	q := summarise(c.x, c.values[y], c.unstable)
	q.rejects = c.rejects
	return q
}

// lines makes a curve of each series.
func (d *drawing) lines(c *chart, cells []*cell) {
	add := func(series string, q point) {
		i := slices.IndexFunc(c.curves, func(one curve) bool { return one.series == series })
		if i < 0 {
			i, c.curves = len(c.curves), append(c.curves, curve{series: series})
		}
		c.curves[i].points = append(c.curves[i].points, q)
	}
	for _, one := range cells {
		add(one.series, one.mean(0))
	}
	for text, values := range d.Published {
		x, _ := strconv.ParseFloat(text, 64)
		for _, v := range values {
			add(publishedSeries, summarise(x, []float64{v}, false))
		}
	}
	for i := range c.curves {
		c.curves[i].hollow = c.curves[i].series == publishedSeries
		slices.SortFunc(c.curves[i].points,
			func(a, b point) int { return cmp.Or(cmp.Compare(a.x, b.x), cmp.Compare(a.mean, b.mean)) })
	}
	if c.axis = fitted(c.curves); d.y[0].Log {
		c.axis = logarithmic(c.curves)
	}
}

// fewBars is how many bars of one part have their values above them.
const fewBars = 12

// bars makes a group of bars of each label, in the order of the rows.
func (d *drawing) bars(c *chart, cells []*cell) {
	for _, one := range cells {
		b := bar{series: one.series}
		for j, q := range d.y {
			name := q.Label
			if len(d.y) == 1 {
				name = one.series
			}
			b.parts = append(b.parts, part{name, one.mean(j)})
		}
		total := one.mean(len(d.y))
		switch {
		case len(d.y) > 1:
			b.total = &total
			if d.Series != "" {
				b.note = one.series
			}
		case len(cells) <= fewBars && d.Published == nil: // its markers would hide the values
			b.note = digits(total.mean)
		}
		i := slices.IndexFunc(c.groups, func(g group) bool { return g.label == one.label })
		if i < 0 {
			i, c.groups = len(c.groups), append(c.groups, group{label: one.label})
		}
		c.groups[i].bars = append(c.groups[i].bars, b)
	}
	published := curve{series: publishedSeries, hollow: true}
	for i, g := range c.groups {
		for j, v := range d.Published[g.label] {
			published.points = append(published.points,
				summarise(float64(i)+barShare*((float64(j)+0.5)/float64(len(g.bars))-0.5), []float64{v}, false))
		}
	}
	if len(published.points) > 0 {
		c.curves = []curve{published}
	}
	c.axis = linear(barSpan(c.groups), spanOf(c.curves, means))
	c.axis.high = roomForNotes(c.groups, c.axis.high)
}
