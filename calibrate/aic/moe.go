package aic

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/cost"
	"github.com/sparseserve/sparseserve/internal/stats"
)

// expertColumns are the columns of moe_perf: routed experts of a layer.
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

// expertTypes maps the table's names of expert weight types to the imported types.
var expertTypes = map[string]string{"bfloat16": "bf16", "fp8": "fp8", "fp8_block": "fp8_block",
	"nvfp4": "nvfp4", "w4a16_mxfp4": "mxfp4", mxfp8Activations: "mxfp4"}

// mxfp8Activations is the table's name of MXFP4 weights with activations in MXFP8. A table that has
// them, a B200's, needs no kernel with 16-bit activations: SGLang's default narrows them
// (flashinfer_mxfp4_moe_precision), and vLLM's recipe for Blackwell too
// (VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8).
const mxfp8Activations = "w4a8_mxfp4_mxfp8"

// experts fits the routed experts of each weight type to half of the points.
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
	of := map[[2]string][]row[expertColumns]{} // by type and kernel
	narrowed := slices.ContainsFunc(rows, func(r row[expertColumns]) bool {
		return r.of.Type == mxfp8Activations
	})
	for _, r := range rows {
		e := &r.of
		kind, known := expertTypes[e.Type]
		switch {
		case e.Tokens < 1 || e.Hidden < 1 || e.Inter < 1 || e.TopK < 1 || e.Experts < e.TopK ||
			e.Cut < 1 || e.Spread < 1:
			return im.fault(operation, r.line, "want tokens, sizes and experts of 1 or more")
		case !known || narrowed && e.Type == "w4a16_mxfp4":
			im.skip("experts of " + e.Type)
		case e.Hidden == 2688 || e.TopK == 22:
			im.skip("experts of two matrices (Nemotron)")
		case e.Hidden == 7168 && e.Experts == 256 && e.TopK == 8:
			im.skip("experts that the table chooses by groups (DeepSeek-V3), from half of the groups")
		case e.Spread > 1 || e.Cut > 8 || e.Inter%e.Cut != 0 || e.Distribution == "power_law_1.2":
			im.skip("experts spread over GPUs, cut over more than 8, or of a power law of exponent 1.2")
		default:
			at := [2]string{kind, r.Kernel}
			of[at] = append(of[at], r)
		}
	}
	for _, kind := range []string{"bf16", "fp8", "fp8_block", "nvfp4", "mxfp4"} { // bf16 judges others
		var best [2]string
		for at, rows := range of {
			most := len(of[best])
			if at[0] == kind && (len(rows) > most || len(rows) == most && at[1] < best[1]) {
				best = at
			}
		}
		for at, rows := range of {
			if at[0] == kind && at != best {
				im.skipped["experts of "+kind+" by "+at[1]] += len(rows)
			}
		}
		if len(of[best]) >= 60 {
			im.fitExperts(kind, of[best])
		}
	}
	return nil
}

// slowerThanWide reports whether a grid of experts takes longer than the grid of 16-bit weights at
// most sizes, as FlashInfer's FP8 experts on Hopper do in the tables. No server gains by such a
// kernel.
func (im *importer) slowerThanWide(g *hw.Grid) bool {
	wide := slices.IndexFunc(im.costs.Grids, func(w hw.Grid) bool {
		return w.Kernel == hw.GridExpert && w.Type == "bf16"
	})
	if wide < 0 {
		return false
	}
	var ratios []float64
	for i, t := range g.Times {
		ratios = append(ratios, t/im.costs.Grids[wide].Times[i])
	}
	return median(ratios) > 1
}

// Sizes of an expert's grid.
var (
	expertTokens  = []int64{1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 512, 1024, 4096}
	expertWeights = []int64{500_000, 2_000_000, 8_000_000, 32_000_000, 128_000_000, 300_000_000}
)

// weights returns the weights of one expert's part on a GPU.
func (e *expertColumns) weights() float64 {
	return 3 * float64(e.Hidden) * float64(e.Inter/e.Cut)
}

// bytes returns the bytes of the weights that the batch reads.
func (e *expertColumns) bytes(kind string) (sum float64) {
	e.each(func(experts, _ float64) { sum += experts * e.weights() * hw.WeightBytes(kind) })
	return sum
}

// leaveCached returns the rows whose weights were not in the L2.
func (im *importer) leaveCached(kind string, all []row[expertColumns]) []row[expertColumns] {
	hbm := newHBM(im.card)
	for _, r := range all {
		hbm.add(r.of.bytes(kind), r.Latency)
	}
	left := slices.DeleteFunc(slices.Clone(all), func(r row[expertColumns]) bool {
		return hbm.isCached(r.of.bytes(kind), r.Latency)
	})
	if n := len(all) - len(left); n > 0 {
		im.skipped["experts of "+kind+" whose weights were in the L2"] += n
	}
	return left
}

// each calls f with groups of experts and the tokens per expert. AIConfigurator's collector draws a
// power law of exponent 1: tokens per expert are log-uniform between 1 and 0.8 of the batch's
// tokens, or between 0.01 and 2 if there are fewer copies than experts. They are scaled to the sum
// of all copies and rounded. Copies that rounding loses go to one more expert each.
func (e *expertColumns) each(f func(experts, tokens float64)) {
	const loadClasses = 64 // of experts, by how many tokens prefer them
	copies, experts := float64(e.Tokens*e.TopK), float64(e.Experts)
	if e.Distribution == "balanced" {
		touched := math.Min(experts, copies)
		f(touched, copies/touched)
		return
	}
	least, most := 0.01, 2.0
	if copies > experts {
		least, most = 1, max(1.001, 0.8*float64(e.Tokens))
	}
	classes := floats.LogSpan(make([]float64, loadClasses), least, most)
	class := experts / loadClasses
	floats.Scale(copies/class/floats.Sum(classes), classes)
	lost, idle := copies, experts
	for _, tokens := range classes {
		if tokens = math.Round(tokens); tokens > 0 {
			f(class, tokens)
			lost -= class * tokens
			idle -= class
		}
	}
	if more := min(lost, idle); more > 0 {
		f(more, 1)
	}
}

// fitExperts makes a grid of an expert's time, with the launch and the copies of tokens as separate
// figures. The table's times are sums of these, so linear least squares on relative errors solves
// for them from half of the rows. Large errors count less. A time that no row determines stays near
// the time of the weights' bytes and FLOPs.
func (im *importer) fitExperts(kind string, all []row[expertColumns]) {
	all = im.leaveCached(kind, all)
	skewed := slices.DeleteFunc(slices.Clone(all), func(r row[expertColumns]) bool {
		return r.of.Distribution == "balanced"
	})
	rows := slices.DeleteFunc(slices.Clone(all), func(r row[expertColumns]) bool {
		return r.of.Distribution != "balanced" && len(skewed) < len(all)
	})
	g := hw.Grid{Kernel: hw.GridExpert, Type: kind, From: hw.Imported, Axes: []hw.Axis{
		axis("tokens", expertTokens), axis("weights", expertWeights)}}
	bytes, peak, hbm := hw.WeightBytes(kind), im.card.GPU.PeakOf(kind), im.card.GPU.HBMBandwidth.SI()
	guess := []float64{20e-6, 2 / hbm} // launch and copies, then the grid
	g.Each(func(at hw.Sizes) {
		guess = append(guess, 50e-9+at[1]*math.Max(bytes/hbm, 2*at[0]/peak))
	})
	g.Times = make([]float64, len(guess)-2)
	terms := make([][]float64, len(rows)) // of each row, in its time
	for i := range rows {
		e := &rows[i].of
		row := append([]float64{guess[0], guess[1] * float64(2*e.Tokens*e.TopK*e.Hidden)}, g.Times...)
		e.each(func(experts, tokens float64) {
			for j := range g.Times {
				g.Times[j] = 1e6
				row[2+j] += guess[2+j] * experts * cost.GridSeconds(&g, hw.Sizes{tokens, e.weights()})
				g.Times[j] = 0
			}
		})
		floats.Scale(1/(rows[i].Latency*1e-3), row)
		terms[i] = row
	}
	var pairs [][2]int // neighbours of the grid
	for axis, step := range g.Strides() {
		for j := step; step > 0 && j < len(g.Times); j++ {
			if j/step%len(g.Axes[axis].At) > 0 {
				pairs = append(pairs, [2]int{2 + j - step, 2 + j})
			}
		}
	}
	x := leastSquares(make([]float64, len(rows)), terms, pairs)
	for j := range g.Times {
		g.Times[j] = stats.Significant(x[2+j]*guess[2+j]*1e6, gridDigits)
	}
	if len(skewed) == len(all) { // sums over many loads leave single times open
		rising(&g)
	}
	im.title(rows[0].common)
	if im.slowerThanWide(&g) {
		im.skipped["experts of "+kind+", whose kernel is slower than that of 16-bit weights"] += len(all)
		return
	}
	g.Source = source(rows[0].common, []string{rows[0].Kernel}, "; fitted to half of the points")
	im.costs.Grids = append(im.costs.Grids, g)
	figure := func(v float64, unit string) hw.Figure {
		return hw.Figure{Value: round(v), Unit: unit, From: hw.Imported, Source: "of their grid's fit"}
	}
	im.costs.Experts = append(im.costs.Experts, hw.ExpertRow{Weights: kind,
		Launch: figure(x[0]*guess[0]*1e6, "us"), Move: figure(1e-9/(x[1]*guess[1]), "GB/s")})
	judge := func(name string, rows []row[expertColumns], every int) {
		var off []Judged
		for i := range rows {
			e := &rows[i].of
			t := x[0]*guess[0] + x[1]*guess[1]*float64(2*e.Tokens*e.TopK*e.Hidden)
			e.each(func(experts, tokens float64) {
				t += experts * cost.GridSeconds(&g, hw.Sizes{tokens, e.weights()})
			})
			off = append(off, Judged{float64(e.Tokens), rows[i].Latency * 1e-3, t, i%every == every-1})
		}
		im.judge(name, len(rows), off)
	}
	judge("experts of "+kind, rows, 2)
	if len(skewed) < len(all) {
		judge("experts of "+kind+", tokens by a power law", skewed, 1)
	}
}
