package figures

import (
	"image/color"
	"strconv"
)

const (
	chunkedPrefill   = "Chunked Prefill"
	segmentedPrefill = "Layer-Segmented Prefill"
)

// fig16 is (a) the mean TTFT with chunked and layer-segmented prefill against
// the request rate and (b) their prefill attention time over that of whole
// prompts.
func fig16(folders []string) (picture, error) {
	plan := func(r *Run) string {
		if r.text("system.prefill") == "layer" {
			return segmentedPrefill
		}
		return chunkedPrefill
	}
	ttft := func(runs []Run) chart {
		c := chart{title: "(a) TTFT", x: "Req Rate (req/s)", y: "Mean TTFT (s)",
			curves: curves(runs, plan, rate, func(r *Run) float64 { return r.TTFT.Mean })}
		c.axis = logarithmic(c.curves)
		return c
	}
	var charts []chart
	for _, folder := range folders {
		runs, err := Read(folder)
		if err != nil {
			return picture{}, err
		}
		charts = append(charts, []func([]Run) chart{ttft, attentionOverhead}[half(folder)](runs))
	}
	return picture{charts: charts, looks: map[string]look{
		chunkedPrefill: {color: color.RGBA{0x00, 0x72, 0xb2, 0xff}, marker: square, width: 1.5,
			hatching: 6},
		segmentedPrefill: {color: color.RGBA{0xc6, 0x2f, 0x1f, 0xff}, marker: diamond, width: 2.2},
	}}, nil
}

// attentionOverhead divides by the run of the same seed with whole prompts. The
// bar of layer-segmented prefill stands in every group: it has no chunks.
func attentionOverhead(runs []Run) chart {
	c := chart{title: "(b) Prefill attention", x: "Chunk Size (tokens)",
		y: "Normalized Attention Time"}
	plain, layer := map[uint64]float64{}, []float64{}
	attention := func(r *Run) float64 { return r.PhaseS["prefill_attention"] }
	for i := range runs {
		if r := &runs[i]; r.text("system.prefill") == "plain" {
			plain[r.Seed] = attention(r)
		}
	}
	var sizes []float64
	chunked := map[float64][]float64{}
	for i := range runs {
		r := &runs[i]
		over := attention(r) / plain[r.Seed]
		switch r.text("system.prefill") {
		case "layer":
			layer = append(layer, over)
		case "chunked":
			size := r.number("system.chunk_tokens")
			if chunked[size] == nil {
				sizes = append(sizes, size)
			}
			chunked[size] = append(chunked[size], over)
		}
	}
	for _, size := range sizes {
		g := group{label: strconv.FormatFloat(size, 'f', -1, 64)}
		for _, b := range []struct {
			series string
			values []float64
		}{{chunkedPrefill, chunked[size]}, {segmentedPrefill, layer}} {
			if len(b.values) == 0 {
				continue
			}
			q := summarise(size, b.values, false)
			g.bars = append(g.bars, bar{note: strconv.FormatFloat(q.mean, 'f', 2, 64),
				parts: []part{{b.series, q}}})
		}
		c.groups = append(c.groups, g)
	}
	c.axis = linear(barSpan(c.groups))
	return c
}
