package answers

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/experiments/validate"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/stats"
)

// replayed is a request of a record and of its simulation. Times are in seconds.
type replayed struct {
	stage               string
	arrival             float64
	measured, simulated [2]float64 // TTFT and TPOT; NaN where it has none
}

// Requests returns the pictures of the requests in a comparison's folder: TTFT and TPOT of both
// sides, and the error of the simulation over time.
func Requests(dir string, r *validate.ReplayReport) ([]doc.Figure, error) {
	all, err := readReplayed(dir)
	if err != nil {
		return nil, err
	}
	asked := comparedRequests(r)[0]
	f := doc.Figure{Name: "distributions", Title: "Distributions of latencies", Caption: asked}
	for j, q := range []struct {
		name, label string
		scale       float64
	}{{"time to first token", "TTFT (s)", 1},
		{"mean time between tokens of a request", "TPOT (ms)", 1e3}} {
		if c := distributions(all, j, q.scale); c != nil {
			c.Title, c.X = q.name+c.Title, q.label
			f.Charts = append(f.Charts, c)
		}
	}
	c := errorsOverTime(all)
	over := doc.Figure{Name: "error", Title: "Error over time", Caption: asked,
		Charts: []*doc.Chart{c}}
	if len(c.Marks) > 0 {
		over.Caption += " Dashed: where the record's load changes."
	}
	return []doc.Figure{f, over}, nil
}

func readReplayed(dir string) (all []replayed, err error) {
	found, err := eachRow(dir, run.RequestsCSV, func(r *resultRow) {
		number := func(column string) float64 {
			if r.text(column) == "" {
				return math.NaN()
			}
			return r.number(column)
		}
		all = append(all, replayed{r.text("stage"), r.number("arrival_s"),
			[2]float64{number("measured_ttft_s"), number("measured_tpot_s")},
			[2]float64{number("simulated_ttft_s"), number("simulated_tpot_s")}})
	})
	if err == nil && !found {
		err = fmt.Errorf("%s: no row", filepath.Join(dir, run.RequestsCSV))
	}
	return all, err
}

// distributions draws the share of requests below each TTFT or TPOT; nil if no request has one.
func distributions(all []replayed, j int, scale float64) *doc.Chart {
	var sides [2][]float64
	for i := range all {
		if q := &all[i]; !math.IsNaN(q.measured[j]) {
			sides[0] = append(sides[0], scale*q.measured[j])
			sides[1] = append(sides[1], scale*q.simulated[j])
		}
	}
	n := len(sides[0])
	if n == 0 {
		return nil // all answers have one token
	}
	least, most := min(slices.Min(sides[0]), slices.Min(sides[1])),
		max(slices.Max(sides[0]), slices.Max(sides[1]))
	return &doc.Chart{Kind: doc.Lines, Title: ", " + Count(n, "request"), Y: "Share of requests (%)",
		LogX: least > 0 && most > 8*least, Lines: []doc.Line{
			{Name: "measured", Color: "#1a1a1a", Bare: true, Points: cumulative(sides[0], 100)},
			{Name: "simulated", Color: "#c62f1f", Bare: true, Dashed: true,
				Points: cumulative(sides[1], 100)}}}
}

// shareSteps is the maximum number of equal steps in which a distribution is drawn.
const shareSteps = 100

// cumulative returns the share of values at or below each value, scaled to total `all`.
func cumulative(values []float64, all float64) []doc.Point {
	slices.Sort(values)
	n := len(values)
	points, steps := []doc.Point{{X: values[0]}}, min(n, shareSteps)
	for i := 1; i <= steps; i++ {
		at := (i*n + steps - 1) / steps // values
		points = append(points, doc.Point{X: values[at-1], Y: all * float64(at) / float64(n)})
	}
	return points
}

// Spans of arrivals: few enough to read, each with enough requests for a median.
const (
	mostSpans     = 60
	requestsASpan = 20 // at least
	fewestInSpan  = 5
)

// errorsOverTime draws the median error of the requests per equal span of arrivals. Marks show
// where the load changes.
func errorsOverTime(all []replayed) *doc.Chart {
	begin, end := all[0].arrival, all[len(all)-1].arrival
	spans := min(max(1, len(all)/requestsASpan), mostSpans)
	width := (end - begin) / float64(spans)
	c := &doc.Chart{Kind: doc.Lines, X: "Arrival (s)", Y: "Error (%)", Levels: []float64{0},
		Title: "simulated over measured less 1"}
	if width > 0 {
		c.Title += fmt.Sprintf(": median of the requests of each %s s", digits(width))
	}
	for j, l := range []doc.Line{{Name: "TTFT", Color: "#0072b2"},
		{Name: "TPOT", Color: "#c62f1f", Dashed: true}} {
		of := make([][]float64, spans)
		for i := range all {
			q := &all[i]
			e := 100 * (q.simulated[j]/q.measured[j] - 1)
			if math.IsNaN(e) || math.IsInf(e, 0) {
				continue
			}
			span := 0
			if width > 0 {
				span = min(int((q.arrival-begin)/width), spans-1)
			}
			of[span] = append(of[span], e)
		}
		for span, errors := range of {
			if len(errors) < min(fewestInSpan, len(all)) {
				continue
			}
			slices.Sort(errors)
			l.Points = append(l.Points, doc.Point{X: begin + (float64(span)+0.5)*width,
				Y: stats.Of(errors, 50)})
		}
		c.Lines = append(c.Lines, drawnLines([]doc.Line{l})...)
	}
	for i := 1; i < len(all); i++ {
		if all[i].stage != all[i-1].stage {
			c.Marks = append(c.Marks, all[i].arrival)
		}
	}
	return c
}
