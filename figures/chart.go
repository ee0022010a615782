package figures

import "slices"

// picture is one file: charts in rows under one legend.
type picture struct {
	file    string // name without extension
	caption string // below everything: what was run
	means   string // what means are of; empty for runs
	charts  []chart
	looks   map[string]look // by series; those missing get one
	wide    float64         // width of a panel over the usual; 0 = 1
	letters []string        // what the letters above bars are, A first
}

// chart is one panel: curves over x, or groups of bars with curves of hollow markers over them.
type chart struct {
	title  string
	x, y   string // labels with units
	curves []curve
	groups []group
	axis   axis      // of y
	across *axis     // of x, for curves; nil spans their points
	marks  []float64 // of x: dashed lines from bottom to top
	levels []float64 // of y: dashed lines from left to right
	labels []note    // of single points
	ticks  []float64 // of x, for curves; nil labels every x
	doubly bool      // x in powers of two
	low    bool      // of half the height, with few labels of y
	most   float64   // y that is possible, as 100 of shares in %; 0 for no bound
}

// curve is one series of points.
type curve struct {
	series string
	points []point
	bare   bool // a line without markers
	dots   bool // small markers without a line
	hollow bool // hollow markers without a line
}

// point is the mean over all seeds at one x.
type point struct {
	x         float64
	runs      int
	mean      float64
	low, high float64   // 95 % confidence interval of the mean; = mean for one run
	values    []float64 // of the runs, where these are too few for an interval to be drawn
	unstable  bool      // the queue grew without end in at least one run
	rejects   bool      // some requests were rejected: the point is of the others
}

// note is a text at a point.
type note struct {
	x, y float64
	text string
}

// group is some bars over one label of x.
type group struct {
	label string
	bars  []bar
}

// bar is one bar, of one part or several on top of each other.
type bar struct {
	series string // of the bar; where it has several parts, they name theirs
	note   string // above the bar
	parts  []part
	total  *point // of several parts; nil draws no interval over them
}

// part is a part of a bar. Its height is the mean.
type part struct {
	series string
	point
}

// height is the bar's total, with its interval.
func (b *bar) height() point {
	if b.total != nil {
		return *b.total
	}
	var sum point
	for _, p := range b.parts {
		below := sum.mean
		sum = p.point
		sum.mean, sum.low, sum.high = below+p.mean, below+p.low, below+p.high
	}
	return sum
}

// seriesOf lists the series of all charts, each once.
func (p *picture) seriesOf() []string {
	var names []string
	for _, c := range p.charts {
		for _, curve := range c.curves {
			names = append(names, curve.series)
		}
		for _, g := range c.groups {
			for _, b := range g.bars {
				for _, part := range b.parts {
					names = append(names, part.series)
				}
			}
		}
	}
	return slices.DeleteFunc(unique(names), func(name string) bool { return name == "" })
}

// hollow says what hollow markers of curves stand for; nothing where there are none.
func (p *picture) hollow() string {
	var unstable, rejects bool
	p.each(func(c *chart, q *point) {
		if len(c.groups) == 0 {
			unstable, rejects = unstable || q.unstable, rejects || q.rejects
		}
	})
	switch {
	case unstable && rejects:
		return "unstable queue, or requests rejected"
	case rejects:
		return "requests rejected"
	case unstable:
		return "unstable queue"
	}
	return ""
}

// each calls f for every point, with its chart.
func (p *picture) each(f func(*chart, *point)) {
	for i := range p.charts {
		c := &p.charts[i]
		for j := range c.curves {
			for k := range c.curves[j].points {
				f(c, &c.curves[j].points[k])
			}
		}
		for _, g := range c.groups {
			for _, b := range g.bars {
				for k := range b.parts {
					f(c, &b.parts[k].point)
				}
				if b.total != nil {
					f(c, b.total)
				}
			}
		}
	}
}

// bound ends intervals at the most that is possible.
func (p *picture) bound() {
	p.each(func(c *chart, q *point) {
		if c.most > 0 && q.high > c.most && q.mean <= c.most {
			q.high = c.most
		}
	})
}
