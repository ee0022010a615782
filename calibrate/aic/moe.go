package aic

import (
	"math"

	"github.com/sparseserve/sparseserve/hw"
)

// expertColumns are those of moe_perf: routed experts of a layer.
type expertColumns struct {
	Type         string `parquet:"moe_dtype"`
	Tokens       int64  `parquet:"num_tokens"`
	Hidden       int64  `parquet:"hidden_size"`
	Inter        int64  `parquet:"inter_size"`
	TopK         int64  `parquet:"topk"`
	Experts      int64  `parquet:"num_experts"`
	Cut          int64  `parquet:"moe_tp_size"`
	Spread       int64  `parquet:"moe_ep_size"`
	Distribution string `parquet:"distribution"`
}

// expertTypes are the types of experts' weights that are taken, by the table's names.
var expertTypes = map[string]string{"bfloat16": "bf16", "fp8": "fp8", "fp8_block": "fp8_block",
	"nvfp4": "nvfp4", "w4a16_mxfp4": "mxfp4"}

// mostCut is the most GPUs over which experts are cut that are taken: one host's.
const mostCut = 8

// experts fits the routed experts of each type of weights to half of the points.
func (im *importer) experts() error {
	const operation = "moe_perf"
	rows, err := read[expertColumns](im.tables, operation)
	if err != nil {
		return err
	}
	if rows == nil {
		im.missing(operation, "experts are derived from dense linears")
		return nil
	}
	type library struct{ kind, kernel string }
	of := map[library][]row[expertColumns]{}
	for _, r := range rows {
		e := &r.of
		kind, known := expertTypes[e.Type]
		switch {
		case e.Tokens < 1 || e.Hidden < 1 || e.Inter < 1 || e.TopK < 1 || e.Experts < e.TopK ||
			e.Cut < 1 || e.Spread < 1:
			return im.fault(operation, r.line, "want tokens, sizes and experts of 1 or more")
		case !known:
			im.skip("experts of " + e.Type)
		case e.Spread > 1 || e.Cut > mostCut || e.Inter%e.Cut != 0:
			im.skip("experts that are spread over GPUs, or cut over more than 8")
		case e.Distribution != "balanced" && e.Distribution != "power_law_1.01" ||
			e.Distribution != "balanced" && im.card.GPU.PeakFP8.Set():
			im.skip("experts of tokens that prefer some of them")
		default:
			at := library{kind, r.Kernel}
			of[at] = append(of[at], r)
		}
	}
	for _, kind := range []string{"bf16", "fp8", "fp8_block", "nvfp4", "mxfp4"} {
		var best []row[expertColumns]
		for at, rows := range of {
			if at.kind == kind && (len(rows) > len(best) ||
				len(rows) == len(best) && rows[0].Kernel < best[0].Kernel) {
				best = rows
			}
		}
		if len(best) >= 60 {
			im.fitExperts(kind, best)
		}
	}
	return nil
}

// expertCost is that of hw.ExpertRow, in SI units.
type expertCost struct{ launch, each, bytes, compute, move float64 }

func (c *expertCost) seconds(e *expertColumns, weightBytes float64) float64 {
	copies := float64(e.Tokens * e.TopK)
	w := 3 * float64(e.Hidden) * float64(e.Inter/e.Cut)
	t := c.launch + 2*copies*float64(e.Hidden)/c.move
	expert := func(tokens float64) float64 {
		return c.each + math.Hypot(w*weightBytes/c.bytes, 2*tokens*w/c.compute)
	}
	if e.Distribution == "balanced" {
		touched := math.Min(float64(e.Experts), copies)
		return t + touched*expert(copies/touched)
	}
	for _, tokens := range e.loads() {
		touched := -math.Expm1(-tokens)
		t += float64(e.Experts) / loadClasses * touched * expert(tokens/touched)
	}
	return t
}

// loadClasses are the classes of experts by how many tokens prefer them.
const loadClasses = 16

// loads are the tokens of an expert of each class under the table's power law of exponent 1, which
// draws them between 1 and 0.8 of all, in logarithms alike, and scales them to the copies.
func (e *expertColumns) loads() (tokens [loadClasses]float64) {
	most, sum := math.Log(max(1, 0.8*float64(e.Tokens))), 0.0
	for i := range tokens {
		tokens[i] = math.Exp(most * (float64(i) + 0.5) / loadClasses)
		sum += tokens[i]
	}
	for i := range tokens {
		tokens[i] *= float64(e.Tokens*e.TopK) / sum / (float64(e.Experts) / loadClasses)
		tokens[i] = min(tokens[i], float64(e.Tokens))
	}
	return tokens
}

func (im *importer) fitExperts(kind string, rows []row[expertColumns]) {
	bytes := hw.ExpertBytes(kind)
	cost := func(f []float64) expertCost { return expertCost{f[0], f[1], f[2], f[3], f[4]} }
	peak, hbm := im.card.PeakOf(kind), im.card.GPU.HBMBandwidth.SI()
	c := cost(fit([]float64{25e-6, 0.1e-6, 0.9 * hbm, 0.5 * peak, 0.2 * hbm}, len(rows),
		func(f []float64, i int) float64 { c := cost(f); return c.seconds(&rows[i].of, bytes) },
		func(i int) float64 { return rows[i].Latency * 1e-3 }))
	c.bytes, c.compute, c.each = min(c.bytes, hbm), min(c.compute, peak), max(c.each, 1e-12)
	var off []Judged
	for i := range rows {
		off = append(off, Judged{float64(rows[i].of.Tokens), rows[i].Latency * 1e-3,
			c.seconds(&rows[i].of, bytes), i%2 == 1})
	}
	im.title(rows[0].common)
	im.judge("experts of "+kind, len(rows), off)
	why := source(rows[0].common, []string{rows[0].Kernel}, "; fitted to half of the points")
	figure := func(v float64, unit string) hw.Figure {
		f := hw.Figure{Value: round(v), Unit: unit, From: hw.Imported, Source: why}
		why = "of the same fit"
		return f
	}
	im.costs.Experts = append(im.costs.Experts, hw.ExpertRow{Weights: kind,
		Launch: figure(c.launch*1e6, "us"), Each: figure(c.each*1e9, "ns"),
		Bytes: figure(c.bytes/1e9, "GB/s"), Compute: figure(c.compute/1e12, "TFLOP/s"),
		Move: figure(c.move/1e9, "GB/s")})
}
