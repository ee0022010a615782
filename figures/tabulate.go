package figures

import (
	"bytes"
	"math"
	"strconv"

	"github.com/sparseserve/sparseserve/internal/files"
)

var tableColumns = []string{"panel", "quantity", "series", "x", "runs", "mean", "low95", "high95",
	"unstable"}

// tabulate writes the numbers of a picture, one row a marker or part of a bar.
func (p *picture) tabulate() []byte {
	var out bytes.Buffer
	w := files.NewCSVWriter(&out)
	w.Write(tableColumns)
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	row := func(c *chart, group, series string, q point) {
		x := group
		if len(c.groups) == 0 {
			x = number(q.x)
		}
		w.Write([]string{c.title, c.y, series, x, strconv.Itoa(q.runs),
			number(q.mean), number(q.low), number(q.high), strconv.FormatBool(q.unstable)})
	}
	for i := range p.charts {
		c := &p.charts[i]
		for _, one := range c.curves {
			for _, q := range one.points {
				group := ""
				if len(c.groups) > 0 {
					group = c.groups[int(math.Round(q.x))].label
				}
				row(c, group, one.series, q)
			}
		}
		for _, g := range c.groups {
			for _, b := range g.bars {
				for _, part := range b.parts {
					name := part.series
					if b.series != "" && b.series != name {
						name = b.series + ": " + name
					}
					row(c, g.label, name, part.point)
				}
				if b.total != nil {
					row(c, g.label, b.series+": total", *b.total)
				}
			}
		}
	}
	w.Flush()
	return out.Bytes()
}
