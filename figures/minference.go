package figures

import (
	"image/color"
	"slices"
	"strconv"
	"strings"
)

// addTo appends a point to the curve of a series, which it makes where there is none.
func addTo(curves []curve, series string, q point) []curve {
	i := slices.IndexFunc(curves, func(c curve) bool { return c.series == series })
	if i < 0 {
		i, curves = len(curves), append(curves, curve{series: series})
	}
	curves[i].points = append(curves[i].points, q)
	return curves
}

// tokenAxis is prompts of 10K to 1M tokens, in thousands.
func tokenAxis(c *chart) {
	c.x, c.ticks = "Context (K tokens)", []float64{100, 200, 300, 500, 1000}
}

// miFig1b is the seconds of a prompt under each way to prefill, how far they are from the
// published ones, and MInference's speedup over dense attention in both.
func miFig1b(folders []string) (picture, error) {
	t, err := readTable(folders[0])
	if err != nil {
		return picture{}, err
	}
	times := chart{title: "(a) Prefill of one prompt", y: "Seconds"}
	errors := chart{title: "(b) Against the published seconds", y: "Deviation (%)"}
	speedup := chart{title: "(c) MInference over FlashAttention-2", x: "Context (K tokens)",
		y: "Speedup"}
	dense := map[float64][2]float64{}
	for row := range t.rows {
		system, gpus, tokens := t.text(row, "system"), t.number(row, "gpus"), t.number(row, "tokens")/1e3
		ours, paper := t.number(row, "seconds"), t.number(row, "published_s")
		if t.err != nil {
			return picture{}, t.err
		}
		if gpus > 1 {
			continue
		}
		times.curves = addTo(times.curves, system, summarise(tokens, []float64{ours}, false))
		off := summarise(tokens, []float64{100 * (ours/paper - 1)}, false)
		errors.curves = addTo(errors.curves, system, off)
		switch system {
		case "FlashAttention-2":
			dense[tokens] = [2]float64{ours, paper}
		case "MInference":
			d, name := dense[tokens], strconv.FormatFloat(tokens, 'f', -1, 64)
			g := group{label: name}
			for _, b := range []struct {
				name  string
				value float64
			}{{"simulated", d[0] / ours}, {"published", d[1] / paper}} {
				g.bars = append(g.bars, bar{series: b.name, note: strconv.FormatFloat(b.value, 'f', 1, 64),
					parts: []part{{b.name, summarise(0, []float64{b.value}, false)}}})
			}
			speedup.groups = append(speedup.groups, g)
		}
	}
	tokenAxis(&times)
	tokenAxis(&errors)
	times.axis, errors.axis = logarithmic(times.curves), axis{-20, 20, false}
	speedup.axis = linear(barSpan(speedup.groups))
	speedup.axis.high = roomForNotes(speedup.groups, speedup.axis.high)
	return picture{
		charts: []chart{times, errors, speedup},
		looks:  map[string]look{"simulated": looks()[3], "published": {color: color.Gray{0xc0}}},
	}, nil
}

// kernelNames are the patterns whose kernels Figs. 10 and 12 draw.
var kernelNames = []struct{ pattern, name string }{
	{"dense", "FlashAttention-2"}, {"a-shape", "A-shape"},
	{"vertical-slash", "Vertical-slash"}, {"block-sparse", "Block-sparse"},
}

func kernelName(pattern string) (string, bool) {
	for _, k := range kernelNames {
		if k.pattern == pattern {
			return k.name, true
		}
	}
	return "", false
}

// miFig10 is the time of one head by pattern, and how it divides at 1M tokens.
func miFig10(folders []string) (picture, error) {
	t, err := readTable(folders[0])
	if err != nil {
		return picture{}, err
	}
	latency := chart{title: "(a) One head", y: "Milliseconds"}
	parts := chart{title: "(b) One head, 1M tokens", y: "Milliseconds"}
	for row := range t.rows {
		name, ok := kernelName(t.text(row, "pattern"))
		tokens, kernel, index := t.number(row, "tokens"), t.number(row, "kernel_ms"),
			t.number(row, "index_ms")
		if t.err != nil {
			return picture{}, t.err
		}
		if !ok {
			continue
		}
		latency.curves = addTo(latency.curves, name,
			summarise(tokens/1e3, []float64{kernel + index}, false))
		if tokens == 1e6 && name != "FlashAttention-2" {
			parts.groups = append(parts.groups, group{label: name, bars: []bar{{parts: []part{
				{"attention", summarise(0, []float64{kernel}, false)},
				{"index", summarise(0, []float64{index}, false)},
			}}}})
		}
	}
	tokenAxis(&latency)
	latency.axis, parts.axis = logarithmic(latency.curves), linear(barSpan(parts.groups))
	return picture{charts: []chart{latency, parts}, looks: map[string]look{
		"attention": {color: color.RGBA{0x8f, 0xb4, 0xd9, 0xff}},
		"index":     {color: color.RGBA{0xc6, 0x2f, 0x1f, 0xff}, hatching: 5},
	}}, nil
}

// miFig11 is how many heads have which sizes, in the file that MInference publishes.
func miFig11(folders []string) (picture, error) {
	t, err := readTable(folders[0])
	if err != nil {
		return picture{}, err
	}
	c := chart{x: "Vertical and slash lines", y: "Heads of Llama-3-8B-262k"}
	for row := range t.rows {
		kind, sizes, ok := strings.Cut(t.text(row, "pattern"), " ")
		heads, tokens := t.number(row, "heads"), t.number(row, "tokens")
		if t.err != nil {
			return picture{}, t.err
		}
		if ok && tokens == t.number(0, "tokens") {
			c.groups = append(c.groups, group{label: sizes, bars: []bar{{
				series: kind, note: strconv.FormatFloat(heads, 'f', -1, 64),
				parts: []part{{kind, summarise(0, []float64{heads}, false)}},
			}}})
		}
	}
	c.axis = linear(barSpan(c.groups))
	c.axis.high = roomForNotes(c.groups, c.axis.high)
	return picture{charts: []chart{c}, looks: map[string]look{"vertical-slash": looks()[1]}}, nil
}

// miFig12 is the share of dense causal attention that each pattern leaves out.
func miFig12(folders []string) (picture, error) {
	t, err := readTable(folders[0])
	if err != nil {
		return picture{}, err
	}
	c := chart{y: "Sparsity of the kernel (%)", axis: axis{60, 101, false}}
	for row := range t.rows {
		name, ok := kernelName(t.text(row, "pattern"))
		tokens, sparsity := t.number(row, "tokens"), t.number(row, "sparsity")
		if t.err != nil {
			return picture{}, t.err
		}
		if ok && name != "FlashAttention-2" && tokens >= 50e3 {
			c.curves = addTo(c.curves, name, summarise(tokens/1e3, []float64{100 * sparsity}, false))
		}
	}
	tokenAxis(&c)
	return picture{charts: []chart{c}}, nil
}

// longParts are what a prompt's time is divided into, with the columns that hold it.
var longParts = []struct{ name, column string }{
	{"linears and norms", "linears"}, {"attention", "prefill_attention"}, {"index", "prefill_index"},
	{"saves, exposed", "save_stall"}, {"rest", "other"},
}

// miServe is the unloaded time to the first token of long prompts, their goodput, and what a
// prompt's time is made of with dense and with sparse prefill.
func miServe(folders []string) (picture, error) {
	t, err := readTable(folders[0])
	if err != nil {
		return picture{}, err
	}
	ttft := chart{title: "(a) Unloaded", y: "TTFT (s)"}
	goodput := chart{title: "(b) Goodput", y: "Goodput (req/hour)"}
	parts := chart{
		title: "(c) A prompt's time: SparseServe, dense (D) and sparse (S)",
		x:     "Context (K tokens)", y: "Share of TTFT (%)", axis: axis{0, 108, false},
	}
	for row := range t.rows {
		system, tokens := t.text(row, "system"), t.number(row, "tokens")/1e3
		seconds, rate := t.number(row, "ttft_s"), t.number(row, "goodput")
		if t.err != nil {
			return picture{}, t.err
		}
		if seconds == 0 {
			continue // its KV does not fit
		}
		low, high := t.number(row, "low"), t.number(row, "high")
		ttft.curves = addTo(ttft.curves, label(system), summarise(tokens, []float64{seconds}, false))
		goodput.curves = addTo(goodput.curves, label(system), point{
			x: tokens, runs: 1, mean: 3600 * rate, low: 3600 * low, high: 3600 * high})
		if !strings.HasPrefix(system, "sparseserve") {
			continue
		}
		name := strconv.FormatFloat(tokens, 'f', -1, 64)
		if n := len(parts.groups); n == 0 || parts.groups[n-1].label != name {
			parts.groups = append(parts.groups, group{label: name})
		}
		g := &parts.groups[len(parts.groups)-1]
		g.bars = append(g.bars,
			longBar(t, row, map[bool]string{true: "D", false: "S"}[system == "sparseserve"]))
	}
	pic := picture{wide: 1.1, looks: map[string]look{}}
	for i, system := range []string{"vllm", "vllm-minference", "sparseserve",
		"sparseserve-minference"} {
		pic.looks[label(system)] = looks()[[]int{0, 1, 4, 3}[i]]
	}
	for _, ph := range phases() {
		for _, p := range longParts {
			if p.column == ph.key || p.column == "other" && ph.key == "host" {
				pic.looks[p.name] = ph.look
			}
		}
	}
	tokenAxis(&ttft)
	tokenAxis(&goodput)
	ttft.axis, goodput.axis = logarithmic(ttft.curves), logarithmic(goodput.curves)
	pic.charts = []chart{ttft, goodput, parts}
	return pic, t.err
}

// longBar divides a prompt's time; what no column of its own has is the rest.
func longBar(t *table, row int, note string) bar {
	values, all := make([]float64, len(longParts)), 0.0
	for i, p := range longParts {
		values[i] = t.number(row, p.column)
	}
	values[len(values)-1] += t.number(row, "load_stall") + t.number(row, "host")
	for _, v := range values {
		all += v
	}
	b := bar{note: note}
	for i, p := range longParts {
		b.parts = append(b.parts, part{p.name, summarise(0, []float64{100 * values[i] / all}, false)})
	}
	return b
}
