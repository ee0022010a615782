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

	"github.com/sparseserve/sparseserve/internal/files"
)

// plannedFile has the candidates of a plan, one row each.
const plannedFile = "candidates.csv"

// IsPlan says whether a folder has the candidates of a plan.
func IsPlan(folder string) bool {
	_, err := os.Stat(filepath.Join(folder, plannedFile))
	return err == nil
}

// mostPlanned is how many candidates have a bar.
const mostPlanned = 12

// planned is a candidate of a plan. What is not known of it is NaN.
type planned struct {
	name, outcome  string
	replicas, gpus float64
	usd, headroom  float64
	limits         [2]string
	shares         [2]float64 // of the limits
}

// Series of a plan's picture.
const (
	meetsSeries  = "meets the service level"
	dearerSeries = "costs at least this, if it meets it"
	firstLimit   = "nearest limit"
	secondLimit  = "next limit"
)

// DrawPlan draws the candidates of a plan's folder into dir: what each costs, how much more load it
// holds and what it uses of its limits. It returns the paths.
func DrawPlan(ctx context.Context, dir, folder string, formats ...string) ([]string, error) {
	all, err := readPlanned(filepath.Join(folder, plannedFile))
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, nil
	}
	left := max(0, len(all)-mostPlanned)
	all = all[:len(all)-left]
	pic := picture{
		file:    "plan",
		looks:   plannedLooks(),
		caption: "Above bars: GPUs, and how much more load they hold where that was looked for",
	}
	if left > 0 {
		pic.caption += fmt.Sprintf("; %d more candidates are in %s", left, plannedFile)
	}
	for i := range all {
		pic.letters = append(pic.letters, all[i].name)
	}
	for _, c := range []chart{plannedCosts(all), plannedLimits(all)} {
		if len(c.groups) > 0 {
			c.title = fmt.Sprintf("(%c) %s", 'a'+len(pic.charts), c.title)
			pic.charts = append(pic.charts, c)
		}
	}
	if len(pic.charts) == 0 {
		return nil, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return writeAll(ctx, dir, []picture{pic}, formats)
}

// readPlanned reads candidates that have a cost, or else limits that they miss.
func readPlanned(path string) ([]planned, error) {
	text, err := files.ReadResult(path)
	if err != nil {
		return nil, err
	}
	t, err := parseTable(path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	number := func(i int, column string) float64 {
		if t.text(i, column) == "" {
			return math.NaN()
		}
		return t.number(i, column)
	}
	var all []planned
	for i := range t.rows {
		p := planned{
			name:     t.text(i, "candidate"),
			outcome:  t.text(i, "outcome"),
			replicas: number(i, "replicas"),
			gpus:     number(i, "gpus"),
			usd:      number(i, "usd_per_hour"),
			headroom: number(i, "headroom"),
			limits:   [2]string{t.text(i, "nearest_limit"), t.text(i, "next_limit")},
			shares:   [2]float64{number(i, "nearest_share"), number(i, "next_share")},
		}
		if !math.IsNaN(p.usd) || !math.IsNaN(p.shares[0]) {
			all = append(all, p)
		}
	}
	slices.SortStableFunc(all, func(x, y planned) int {
		switch {
		case x.outcome == y.outcome || math.IsNaN(x.usd) || math.IsNaN(y.usd):
			return 0
		case x.outcome == "meets":
			return -1
		}
		return 1
	})
	return all, t.err
}

func plannedLooks() map[string]look {
	return map[string]look{
		meetsSeries:  {color.RGBA{0x00, 0x72, 0xb2, 0xff}, circle, nil, 2, 0},
		dearerSeries: {color.RGBA{0xd9, 0xd9, 0xd9, 0xff}, circle, nil, 2, 6},
		firstLimit:   {color.RGBA{0xc6, 0x2f, 0x1f, 0xff}, square, nil, 2, 0},
		secondLimit:  {color.RGBA{0xe6, 0xb8, 0x5c, 0xff}, square, nil, 2, 8},
	}
}

// plannedCosts draws what each candidate costs an hour.
func plannedCosts(all []planned) chart {
	c := chart{title: "what serves the load", y: "$ an hour"}
	most := 0.0
	for i := range all {
		p := &all[i]
		if math.IsNaN(p.usd) {
			continue
		}
		series, note := meetsSeries, fmt.Sprintf("%.0f", p.gpus)
		if p.outcome != "meets" {
			series, note = dearerSeries, ""
		}
		if !math.IsNaN(p.headroom) {
			note += fmt.Sprintf(", %+.0f %%", 100*p.headroom)
		}
		c.groups = append(
			c.groups,
			group{letterOf(i), []bar{{series, note, []part{{series, valuePoint(p.usd)}}, nil}}},
		)
		most = max(most, p.usd)
	}
	c.axis = axis{0, 1.15 * most, false}
	return c
}

// plannedLimits draws what each candidate uses of the two limits that it is nearest to.
func plannedLimits(all []planned) chart {
	c := chart{title: "how near its limits", y: "Used of the limit (%)", levels: []float64{100}}
	most := 100.0
	for i := range all {
		p := &all[i]
		g := group{label: letterOf(i)}
		for j, series := range []string{firstLimit, secondLimit} {
			if !math.IsNaN(p.shares[j]) {
				g.bars = append(
					g.bars,
					bar{series, p.limits[j], []part{{series, valuePoint(100 * p.shares[j])}}, nil},
				)
				most = max(most, 100*p.shares[j])
			}
		}
		if len(g.bars) > 0 {
			c.groups = append(c.groups, g)
		}
	}
	c.axis = axis{0, 1.3 * most, false}
	return c
}

// letterOf names candidate i under its bars.
func letterOf(i int) string { return string(rune('A' + i)) }

func valuePoint(x float64) point { return point{runs: 1, mean: x, low: x, high: x} }
