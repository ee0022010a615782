package figures

import (
	"image/color"
	"maps"
	"slices"
	"strconv"
)

// fig14 is (a) the time of a batch, split into loading and the rest, with memcpy
// and FlashH2D, and (b) prefill with three ways to save over its computation.
func fig14(folders []string) (picture, error) {
	var charts []chart
	for _, folder := range folders {
		runs, err := Read(folder)
		if err != nil {
			return picture{}, err
		}
		charts = append(charts, []func([]Run) chart{batchTime, prefillTime}[half(folder)](runs))
	}
	grey := func(y uint8) look {
		return look{color: color.Gray{y}}
	}
	return picture{
		wide:   1.2, // for the names above the bars
		charts: charts,
		looks: map[string]look{
			"loading": {color: color.RGBA{0xc6, 0x2f, 0x1f, 0xff}, hatching: 5},
			"other":   grey(0xc0),
			"prefill": {color: color.RGBA{0x56, 0xb4, 0xe9, 0xff}},
		},
	}, nil
}

func batchTime(runs []Run) chart {
	c := chart{title: "(a) Batch latency by loading engine", x: "Batch Size", y: "Batch Latency (ms)"}
	var sizes []float64
	for i := range runs {
		sizes = append(sizes, runs[i].number("system.max_requests"))
	}
	slices.Sort(sizes)
	for _, size := range slices.Compact(sizes) {
		g := group{label: tickLabel(size)}
		for _, engine := range []struct{ key, name string }{{"memcpy", "memcpy"}, {"flash", "FlashH2D"}} {
			var loading, other, total []float64
			for i := range runs {
				r := &runs[i]
				if r.number("system.max_requests") != size || r.text("system.load_engine") != engine.key {
					continue
				}
				load := 1e3 * r.PhaseS["load_stall"] / r.Steps
				loading, other, total = append(loading, load), append(other, stepTime(r)-load),
					append(total, stepTime(r))
			}
			if len(other) > 0 {
				sum := summarise(0, total, false)
				g.bars = append(g.bars, bar{series: engine.name, note: engine.name, parts: []part{
					{"other", summarise(0, other, false)}, {"loading", summarise(0, loading, false)},
				}, total: &sum})
			}
		}
		c.groups = append(c.groups, g)
	}
	c.axis = linear(barSpan(c.groups))
	return c
}

// stepTime is the mean time of a step in ms, its phases added up in the order of
// their names so that rounding never varies.
func stepTime(r *Run) float64 {
	sum := 0.0
	for _, name := range slices.Sorted(maps.Keys(r.PhaseS)) {
		sum += r.PhaseS[name]
	}
	return 1e3 * sum / r.Steps
}

// prefillTime divides by the run of the same seed that saves nothing.
func prefillTime(runs []Run) chart {
	c := chart{title: "(b) Prefill by saving engine", y: "Normalized Prefill Latency"}
	alone := map[uint64]float64{}
	for i := range runs {
		if r := &runs[i]; r.text("system.save_engine") == "" {
			alone[r.Seed] = r.TTFT.Mean
		}
	}
	for _, engine := range []struct{ key, name string }{
		{"", "Prefill Comp."}, {"memcpy", "memcpy"}, {"gpu", "GPU-direct"}, {"flash", "FlashD2H"},
	} {
		var ratios []float64
		for i := range runs {
			if r := &runs[i]; r.text("system.save_engine") == engine.key && alone[r.Seed] > 0 {
				ratios = append(ratios, r.TTFT.Mean/alone[r.Seed])
			}
		}
		if len(ratios) == 0 {
			continue
		}
		q := summarise(0, ratios, false)
		c.groups = append(c.groups, group{label: engine.name, bars: []bar{
			{note: strconv.FormatFloat(q.mean, 'f', 2, 64), parts: []part{{"prefill", q}}},
		}})
	}
	c.axis = linear(barSpan(c.groups))
	return c
}
