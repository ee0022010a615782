package answers

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/experiments/validate"
	"github.com/sparseserve/sparseserve/internal/doc"
)

// Requests returns the picture of the requests in a comparison's folder: the distributions of TTFT
// and TPOT, measured and simulated.
func Requests(dir string, r *validate.ReplayReport) ([]doc.Figure, error) {
	f := doc.Figure{Name: "distributions", Title: "Distributions of latencies",
		Caption: comparedRequests(r)[0]}
	for _, q := range []struct {
		column, name, label string
		scale               float64
	}{{"ttft_s", "time to first token", "TTFT (s)", 1},
		{"tpot_s", "mean time between tokens of a request", "TPOT (ms)", 1e3}} {
		var measured, simulated []float64
		found, err := eachRow(dir, run.RequestsCSV, func(row *resultRow) {
			if row.text("measured_"+q.column) != "" { // of an answer with one token it is empty
				measured = append(measured, q.scale*row.number("measured_"+q.column))
				simulated = append(simulated, q.scale*row.number("simulated_"+q.column))
			}
		})
		if err == nil && !found {
			err = fmt.Errorf("%s: no row", filepath.Join(dir, run.RequestsCSV))
		}
		if err != nil {
			return nil, err
		}
		if len(measured) > 0 {
			f.Charts = append(f.Charts, &doc.Chart{Kind: doc.Lines, X: q.label,
				Y: "Share of requests (%)", Title: q.name + ", " + Count(len(measured), "request"),
				Lines: []doc.Line{
					{Name: "measured", Color: "#1a1a1a", Bare: true, Points: cumulative(measured, 100)},
					{Name: "simulated", Color: "#c62f1f", Bare: true, Dashed: true,
						Points: cumulative(simulated, 100)}}})
		}
	}
	if len(f.Charts) == 0 { // a record of aggregates
		return nil, nil
	}
	shareAcross(f.Charts)
	return []doc.Figure{f}, nil
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
