package figures

// picture is one PNG: charts in a row under one legend.
type picture struct {
	file   string // name without extension
	head   string // above everything; empty for none
	charts []chart
	looks  map[string]look // by series; those missing get one
	wide   float64         // width of a panel over the usual; 0 = 1
}

// chart is one panel: curves over x, or groups of bars.
type chart struct {
	title  string
	x, y   string // labels with units
	curves []curve
	groups []group
	axis   axis      // of y
	across *axis     // of x, for curves; nil spans their points
	marks  []float64 // of x: dashed lines from bottom to top
	ticks  []float64 // of x, for curves; nil labels every x
	doubly bool      // x in powers of two
	right  *scale    // of the curves that are drawn against the right axis
}

// scale is a second y axis.
type scale struct {
	label string
	axis  axis
}

// curve is one series of points.
type curve struct {
	series string
	points []point
	right  bool // against the right axis
	bare   bool // a line without markers
}

// point is the mean over all seeds at one x.
type point struct {
	x         float64
	runs      int
	mean      float64
	low, high float64 // 95 % confidence interval of the mean; = mean for one run
	unstable  bool    // the queue grew without end in at least one run
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
	seen := map[string]bool{}
	add := func(name string) {
		if name != "" && !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	for _, c := range p.charts {
		for _, curve := range c.curves {
			add(curve.series)
		}
		for _, g := range c.groups {
			for _, b := range g.bars {
				for _, part := range b.parts {
					add(part.series)
				}
			}
		}
	}
	return names
}

// unstable says whether any point is.
func (p *picture) unstable() bool {
	for _, c := range p.charts {
		for _, curve := range c.curves {
			for _, q := range curve.points {
				if q.unstable {
					return true
				}
			}
		}
	}
	return false
}
