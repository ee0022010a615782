package answers

import (
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"slices"

	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/files"
)

// mostDots is about the largest number of requests drawn as dots.
const mostDots = 4096

// served holds the times of a request in s, and its mean time between tokens in ms; -1 for a
// request with one token.
type served struct{ arrival, scheduled, first, last, tbt float64 }

// eachRequest calls do for each served request of a run's folder and, if rejected is not nil,
// rejected with the arrival of each rejected request. It returns whether there is any request.
func eachRequest(folder string, do func(served), rejected func(arrival float64)) (bool, error) {
	return eachRow(folder, run.RequestsCSV, func(r *files.Row) {
		q := served{arrival: r.Number("arrival_s"), tbt: -1}
		if rejected != nil && r.Text("rejected") != "" {
			rejected(q.arrival)
		}
		if r.Text("first_token_s") == "" || r.Text("last_token_s") == "" {
			return
		}
		q.scheduled, q.first = r.Number("scheduled_s"), r.Number("first_token_s")
		q.last = r.Number("last_token_s")
		if tokens := r.Number("output_tokens"); tokens > 1 {
			q.tbt = 1e3 * (q.last - q.first) / (tokens - 1)
		}
		do(q)
	})
}

// oneRun draws a single run: the numbers of waiting and running requests over time, and TTFT and
// TBT of each request over its arrival. Bars for one run would repeat the table.
func oneRun(folder string) ([]doc.Figure, error) {
	var all []served
	end, refused := 0.0, doc.Line{Name: "rejected", Dots: true}
	found, err := eachRequest(folder, func(q served) {
		all, end = append(all, q), max(end, q.arrival, q.last)
	}, func(arrival float64) {
		refused.Points, end = append(refused.Points, doc.Point{X: arrival}), max(end, arrival)
	})
	if !found || err != nil || end == 0 {
		return nil, err
	}
	width := end / timelineBins
	waiting, running := make([]float64, timelineBins), make([]float64, timelineBins)
	var ttft, tbt []doc.Point
	every := 1 + len(all)/mostDots
	for i, q := range all {
		spread(waiting, q.arrival, q.scheduled, width, 1)
		spread(running, q.scheduled, q.last, width, 1)
		if (i+1)%every != 0 {
			continue
		}
		ttft = append(ttft, doc.Point{X: q.arrival, Y: q.first - q.arrival})
		if q.tbt >= 0 {
			tbt = append(tbt, doc.Point{X: q.arrival, Y: q.tbt})
		}
	}
	dots := func(points []doc.Point) []doc.Line {
		return []doc.Line{{Name: "a request", Dots: true, Points: points}}
	}
	charts := []*doc.Chart{
		{Title: "Requests", Y: "Requests", Whole: true, Lines: []doc.Line{
			overBins("waiting", waiting, 0, width), overBins("running", running, 0, width)}},
		{Title: "Time to first token, by arrival", Y: "TTFT (s)", Lines: dots(ttft)},
		{Title: "Mean time between tokens of a request, by arrival", Y: "TBT (ms)",
			Lines: dots(tbt)},
	}
	if len(refused.Points) > 0 {
		charts[1].Lines = append(charts[1].Lines, refused)
	}
	charts = slices.DeleteFunc(charts, func(c *doc.Chart) bool { return len(c.Lines[0].Points) == 0 })
	for _, c := range charts {
		c.X, c.Low, c.XEnds = "Time (s)", true, []float64{0, end}
	}
	return []doc.Figure{{Name: "run", Title: "Over time", Charts: charts}}, nil
}

// spread adds a value from one moment to another to the spans of equal width that it overlaps, so
// that each has its mean.
func spread(into []float64, from, to, width, value float64) {
	for bin := max(0, int(from/width)); bin < len(into) && float64(bin)*width < to; bin++ {
		low, high := float64(bin)*width, float64(bin+1)*width
		into[bin] += value * (min(to, high) - max(from, low)) / width
	}
}

// overBins returns a line over spans of equal width, the first of which begins at from.
func overBins(name string, values []float64, from, width float64) doc.Line {
	l := doc.Line{Name: name, Bare: true}
	for bin, v := range values {
		l.Points = append(l.Points, doc.Point{X: from + (float64(bin)+0.5)*width, Y: v})
	}
	return l
}

// mostShared is the maximum number of x values with distributions of their own.
const mostShared = 3

// distributions draws the share of requests below each TTFT and TBT, all seeds together, in two
// charts for the lowest, the middle and the highest x; none at an x where a run has no requests.
func (r *Runs) distributions(p *panel) (charts []*doc.Chart, err error) {
	all := distinct(p.rows, func(row *runRow) float64 { return row.x })
	if n := len(all); n > mostShared {
		all = []float64{all[0], all[n/2], all[n-1]}
	}
loads:
	for _, at := range all {
		rows := where(p.rows, func(row *runRow) bool { return row.x == at })
		two := []*doc.Chart{{X: "TTFT (s)", Title: rows[0].at + ": time to first token"},
			{X: "TBT (ms), mean of a request", Title: rows[0].at + ": time between tokens"}}
		for i := range rows {
			var values [2][]float64
			for _, s := range rows[i].runs {
				found, err := eachRequest(r.folder(s), func(q served) {
					if values[0] = append(values[0], q.first-q.arrival); q.tbt >= 0 {
						values[1] = append(values[1], q.tbt)
					}
				}, nil)
				if err != nil {
					return nil, err
				}
				if !found {
					continue loads
				}
			}
			for k, c := range two {
				if len(values[k]) > 0 {
					c.Lines = append(c.Lines, doc.Line{Name: rows[i].series, Bare: true,
						Points: cumulative(values[k])})
				}
			}
		}
		charts = append(charts, slices.DeleteFunc(two,
			func(c *doc.Chart) bool { return len(c.Lines) == 0 })...)
	}
	ofShares(charts)
	return charts, nil
}

// ofShares sets the axes of distributions. Charts with the same x quantity have one x axis, so that
// they can be compared. It is logarithmic if values are far apart.
func ofShares(charts []*doc.Chart) {
	of := map[string][]doc.Line{}
	for _, c := range charts {
		of[c.X] = append(of[c.X], c.Lines...)
	}
	for _, c := range charts {
		c.Y, c.YEnds = "Share of requests (%)", []float64{0, 104}
		low, high := math.Inf(1), math.Inf(-1)
		for _, l := range of[c.X] {
			low, high = min(low, l.Points[0].X), max(high, l.Points[len(l.Points)-1].X)
		}
		if c.LogX = low > 0 && high > 8*low; c.LogX {
			c.XEnds = []float64{low / 1.15, high * 1.15}
		} else {
			c.XEnds = []float64{min(0, low), max(high*1.02, 1e-9)}
		}
	}
}

// eachRow reads a table of a run's folder and passes its rows to do, one at a time. found is false
// if the table is missing or has no row.
func eachRow(folder, name string, do func(*files.Row)) (found bool, err error) {
	found, err = files.EachRow(filepath.Join(folder, name), do)
	if folder == "" || errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return found, err
}
