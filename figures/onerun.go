package figures

import "math"

// oneRun draws a run that is alone: how many requests wait and run over time, and the TTFT and TBT
// of each request over its arrival. Bars of one run would say no more than the table.
func oneRun(r *Run) (picture, error) {
	pic := picture{file: "run", wide: 1.7}
	end := 0.0
	found, err := eachRow(r.folder, "requests.csv", func(t *table) {
		for _, column := range []string{"arrival_s", "last_token_s"} {
			if t.text(0, column) != "" {
				end = math.Max(end, t.number(0, column))
			}
		}
	})
	if !found || err != nil || end == 0 {
		return pic, err
	}
	width := end / timelineBins
	waiting, running := make([]float64, timelineBins), make([]float64, timelineBins)
	ttft, tbt := sampled[point](mostDots), sampled[point](mostDots)
	refused := curve{series: "rejected", dots: true}
	_, err = eachRow(r.folder, "requests.csv", func(t *table) {
		arrival := t.number(0, "arrival_s")
		if t.text(0, "rejected") != "" {
			refused.points = append(refused.points, single(arrival, 0))
		}
		if t.text(0, "first_token_s") == "" || t.text(0, "last_token_s") == "" {
			return // not served
		}
		first, last := t.number(0, "first_token_s"), t.number(0, "last_token_s")
		scheduled := t.number(0, "scheduled_s")
		spread(waiting, arrival, scheduled, width)
		spread(running, scheduled, last, width)
		ttft.add(single(arrival, first-arrival))
		if tokens := t.number(0, "output_tokens"); tokens > 1 {
			tbt.add(single(arrival, 1e3*(last-first)/(tokens-1)))
		}
	})
	requests := chart{title: "Requests", x: "Time (s)", y: "Requests", low: true,
		curves: []curve{overBins("waiting", waiting, width), overBins("running", running, width)}}
	first := chart{title: "Time to first token, by arrival", x: "Time (s)", y: "TTFT (s)", low: true,
		curves: []curve{{series: "a request", dots: true, points: ttft.values}}}
	if len(refused.points) > 0 {
		first.curves = append(first.curves, refused)
	}
	between := chart{title: "Mean time between tokens of a request, by arrival", x: "Time (s)",
		y: "TBT (ms)", low: true, curves: []curve{{series: "a request", dots: true, points: tbt.values}}}
	pic.charts = []chart{requests, first, between}
	for i := range pic.charts {
		c := &pic.charts[i]
		c.axis, c.across = linear(spanOf(c.curves, means)), &axis{0, end, false}
	}
	return pic, err
}

// single is a point of one request.
func single(x, y float64) point { return point{x: x, runs: 1, mean: y, low: y, high: y} }

// spread adds the time from one moment to another to the spans of a width that it is in, as a share
// of the span.
func spread(into []float64, from, to, width float64) {
	for bin := max(0, int(from/width)); bin < len(into) && float64(bin)*width < to; bin++ {
		low, high := float64(bin)*width, float64(bin+1)*width
		into[bin] += (math.Min(to, high) - math.Max(from, low)) / width
	}
}

// overBins is a line over spans of a width.
func overBins(series string, values []float64, width float64) curve {
	c := curve{series: series, bare: true}
	for bin, v := range values {
		c.points = append(c.points, single((float64(bin)+0.5)*width, v))
	}
	return c
}

// mostDots is how many requests are drawn as dots.
const mostDots = 4096
