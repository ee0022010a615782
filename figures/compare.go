package figures

import (
	"bytes"
	"context"
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"gonum.org/v1/plot/vg"

	"github.com/sparseserve/sparseserve/internal/files"
)

// replayedRequest is a request of a record and of its simulation. Times are in
// seconds.
type replayedRequest struct {
	stage               string
	arrival             float64
	measured, simulated [2]float64 // TTFT and TPOT; NaN where it has none
}

// comparedNames are the quantities of a replayedRequest, and their columns.
var comparedNames = [2]string{"TTFT", "TPOT"}

// DrawComparison draws the result folder of a record held against its
// simulation into dir: distributions.png, TTFT and TPOT of both over each other,
// and error.png, how far the simulation is off over time. It returns the paths.
func DrawComparison(ctx context.Context, dir, folder string, formats ...string) ([]string, error) {
	pictures, err := comparison(folder)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return writeAll(ctx, dir, pictures, formats)
}

// comparison are the pictures of a comparison's folder.
func comparison(folder string) ([]picture, error) {
	var runs []struct {
		Name   string `json:"name"`
		System string `json:"system"`
		Model  string `json:"model"`
		GPU    string `json:"gpu"`
	}
	if err := files.ReadJSON(filepath.Join(folder, "summary.json"), &runs); err != nil {
		return nil, err
	}
	if len(runs) != 1 {
		return nil, fmt.Errorf("%s: %d runs, a record is compared with one",
			filepath.Join(folder, "summary.json"), len(runs))
	}
	all, err := readReplayed(filepath.Join(folder, "requests.csv"))
	if err != nil {
		return nil, err
	}
	r := runs[0]
	head := fmt.Sprintf("%s on %s, %s: %s", modelLabel(r.Model), gpuLabel(r.GPU),
		label(r.System), r.Name)
	pictures := []picture{distributions(all), errorsOverTime(all)}
	for i := range pictures {
		pictures[i].head = head
	}
	return pictures, nil
}

func readReplayed(path string) ([]replayedRequest, error) {
	text, err := files.ReadResult(path)
	if err != nil {
		return nil, err
	}
	t, err := parseTable(path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	all := make([]replayedRequest, len(t.rows))
	for i := range all {
		r := &all[i]
		r.stage, r.arrival = t.text(i, "stage"), t.number(i, "arrival_s")
		for j, column := range []string{"ttft_s", "tpot_s"} {
			for side, into := range map[string]*float64{"measured_": &r.measured[j],
				"simulated_": &r.simulated[j]} {
				if *into = math.NaN(); t.text(i, side+column) != "" {
					*into = t.number(i, side+column)
				}
			}
		}
	}
	return all, t.err
}

// comparedLooks distinguish measured and simulated, TTFT and TPOT.
func comparedLooks() map[string]look {
	blue, red := color.RGBA{0x00, 0x72, 0xb2, 0xff}, color.RGBA{0xc6, 0x2f, 0x1f, 0xff}
	return map[string]look{
		"measured":  {color.RGBA{0x1a, 0x1a, 0x1a, 0xff}, circle, nil, 2, 0},
		"simulated": {red, square, []vg.Length{7, 3}, 2, 0},
		"TTFT":      {blue, circle, nil, 1.6, 0},
		"TPOT":      {red, square, []vg.Length{7, 3}, 1.6, 0},
	}
}

// distributions draws the share of requests below each TTFT and TPOT.
func distributions(all []replayedRequest) picture {
	pic := picture{file: "distributions", looks: comparedLooks()}
	for j, unit := range []struct {
		name, label string
		scale       float64
	}{{"time to first token", "TTFT (s)", 1},
		{"mean time between tokens of a request", "TPOT (ms)", 1e3}} {
		var measured, simulated []float64
		for i := range all {
			if r := &all[i]; !math.IsNaN(r.measured[j]) {
				measured, simulated = append(measured, unit.scale*r.measured[j]),
					append(simulated, unit.scale*r.simulated[j])
			}
		}
		if len(measured) == 0 {
			continue // all answers are of one token
		}
		c := chart{
			title: fmt.Sprintf("(%c) %s, %d requests", 'a'+len(pic.charts), unit.name, len(measured)),
			x:     unit.label, y: "Share of requests", axis: axis{low: 0, high: 1.04},
			curves: []curve{cumulative("measured", measured), cumulative("simulated", simulated)},
		}
		c.across = acrossOf(c.curves)
		pic.charts = append(pic.charts, c)
	}
	return pic
}

// shareSteps is how many equal steps the share of requests is drawn in at most.
const shareSteps = 100

// cumulative is the empirical distribution of values: how many of them are at or
// below each.
func cumulative(series string, values []float64) curve {
	slices.Sort(values)
	c := curve{series: series, bare: true}
	n := len(values)
	steps := min(n, shareSteps)
	for i := 1; i <= steps; i++ {
		at := (i*n + steps - 1) / steps // requests
		share := float64(at) / float64(n)
		c.points = append(c.points, point{x: values[at-1], runs: 1, mean: share, low: share, high: share})
	}
	first := c.points[0]
	c.points = slices.Insert(c.points, 0, point{x: first.x, runs: 1})
	return c
}

// Bins of arrival times: few enough to read, each with enough requests for a
// median.
const (
	mostErrorBins = 60
	errorBinMean  = 20 // requests, at least
	errorBinLeast = 5
)

// errorsOverTime draws the median relative error of the requests that arrived
// in each of equal spans of time. Dashed lines are where the load changes.
func errorsOverTime(all []replayedRequest) picture {
	begin, end := all[0].arrival, all[len(all)-1].arrival
	bins := min(max(1, len(all)/errorBinMean), mostErrorBins)
	width := (end - begin) / float64(bins)
	c := chart{x: "Arrival (s)", y: "Error (%)", title: "simulated over measured less 1, by request"}
	if width > 0 {
		c.title = fmt.Sprintf("simulated over measured less 1: median of the requests of each %s s",
			strconv.FormatFloat(width, 'g', 3, 64))
	}
	for j, name := range comparedNames {
		sorted := make([][]float64, bins)
		for i := range all {
			r := &all[i]
			if e := 100 * (r.simulated[j]/r.measured[j] - 1); !math.IsNaN(e) && !math.IsInf(e, 0) {
				bin := 0
				if width > 0 {
					bin = min(int((r.arrival-begin)/width), bins-1)
				}
				sorted[bin] = append(sorted[bin], e)
			}
		}
		one := curve{series: name}
		for bin, errors := range sorted {
			if len(errors) < min(errorBinLeast, len(all)) {
				continue
			}
			m := medianOf(errors)
			one.points = append(one.points, point{x: begin + (float64(bin)+0.5)*width, runs: len(errors),
				mean: m, low: m, high: m})
		}
		if len(one.points) > 0 {
			c.curves = append(c.curves, one)
		}
	}
	for i := 1; i < len(all); i++ {
		if all[i].stage != all[i-1].stage {
			c.marks = append(c.marks, all[i].arrival)
		}
	}
	s := union([]span{spanOf(c.curves, means), {0, 0}})
	room := 0.08 * math.Max(s.high-s.low, 1)
	c.axis = axis{low: s.low - room, high: s.high + room}
	across := axis{low: begin, high: math.Max(end, begin+1)}
	c.across = &across
	pic := picture{file: "error", charts: []chart{c}, looks: comparedLooks(), wide: 1.6}
	if len(c.marks) > 0 {
		pic.caption = "Dashed: where the record's load changes"
	}
	return pic
}

func medianOf(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}
