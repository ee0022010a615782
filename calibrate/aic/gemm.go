package aic

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/hw"
)

// gemmColumns are the columns of gemm_perf, which times Y = X W with Y of m x n and X of m x k.
type gemmColumns struct {
	Type string `parquet:"gemm_dtype"`
	M    int64  `parquet:"m"`
	N    int64  `parquet:"n"`
	K    int64  `parquet:"k"`
}

// gemmTypes maps the table's names of weight types to the imported types. int8_wo and int4_wo are
// not imported, because their arithmetic is in 16 bits.
var gemmTypes = map[string]string{"bfloat16": "bf16", "fp8": "fp8", "fp8_block": "fp8_block",
	"nvfp4": "nvfp4", "int8": "int8"}

// Sizes of the grid. Factors of 1.5 and 2 suffice for columns and rows, because a GEMM's time is
// nearly linear between them. The token axis has more points, some one above a tile, because the
// time jumps when a GEMM needs another tile of tokens.
var (
	gemmTokens = []int64{1, 4, 8, 16, 17, 32, 48, 64, 65, 96, 128, 129, 160, 192, 256, 257, 384,
		512, 513, 768, 1024, 1025, 1280, 1536, 2048, 3072, 4096, 8192, 16384, 32768}
	gemmSides = []int64{128, 512, 1024, 2048, 3072, 4096, 5120, 6144, 7168, 8192, 12288, 16384,
		65536}
)

// gemms makes a grid for each weight type of the table.
func (im *importer) gemms() error {
	rows, err := read[gemmColumns](im.tables, "gemm_perf")
	if err != nil {
		return err
	}
	if rows == nil {
		im.missing("gemm_perf", "linears are taken from "+im.base.Name)
		return nil
	}
	byType := map[string][]row[gemmColumns]{}
	for _, r := range rows {
		kind, known := gemmTypes[r.of.Type]
		if !known {
			im.skip("GEMMs of " + r.of.Type)
			continue
		}
		if r.of.M < 1 || r.of.N < 1 || r.of.K < 1 {
			return im.fault("gemm_perf", r.line, "m, n and k: want 1 or more, got %d, %d, %d", r.of.M,
				r.of.N, r.of.K)
		}
		flops := 2 * float64(r.of.M) * float64(r.of.N) * float64(r.of.K)
		if peak := im.card.GPU.PeakOf(kind); flops/(r.Latency*1e-3) > peak {
			return im.fault("gemm_perf", r.line, "%d x %d x %d of %s in %.4g ms are %.4g TFLOP/s, above "+
				"the card's peak of %.4g: the nominal figures describe another card", r.of.M, r.of.N, r.of.K,
				r.of.Type, r.Latency, flops/r.Latency/1e9, peak/1e12)
		}
		byType[kind] = append(byType[kind], r)
	}
	for _, kind := range []string{"bf16", "fp8", "fp8_block", "int8", "nvfp4"} {
		if len(byType[kind]) > 0 {
			if err := im.gemmGrid(kind, byType[kind]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (im *importer) gemmGrid(kind string, rows []row[gemmColumns]) error {
	// an engine selects the fastest of several kernels for a size
	times := map[hw.Sizes]float64{}
	for _, r := range rows {
		at := hw.Sizes{float64(r.of.M), float64(r.of.N), float64(r.of.K)}
		if t, ok := times[at]; !ok || r.Latency < t {
			times[at] = r.Latency
		}
	}
	g := hw.Grid{Kernel: hw.GridGEMM, Type: kind, Axes: []hw.Axis{
		axis("tokens", gemmTokens), axis("columns", gemmSides), axis("rows", gemmSides)}}
	im.withoutGlitches(&g, times)
	if kind == "fp8_block" {
		im.aboveHost(times)
	} else if kind == "fp8" {
		im.fp8 = maps.Clone(times)
	}
	im.fromHBM(&g, times, func(at hw.Sizes) float64 { return at[1] * at[2] * hw.WeightBytes(kind) })
	if kind == "fp8" || kind == "fp8_block" {
		if err := im.raggedGrid(kind, times, rows); err != nil {
			return err
		}
	}
	g.Axes[0] = axis("tokens", climbs(times))
	return im.grid(g, times, rows[0].common, kernelsOf(rows))
}

// withoutGlitches removes times, aligned or ragged, that exceed those of nearby token counts by
// half: something else ran during the measurement. A new tile of tokens does not look like that,
// because the larger counts need it too. On the grid the usual time replaces them.
func (im *importer) withoutGlitches(g *hw.Grid, times map[hw.Sizes]float64) {
	type matrix struct{ columns, rows float64 }
	counts := map[matrix][]float64{}
	for at := range times {
		m := matrix{at[1], at[2]}
		counts[m] = append(counts[m], at[0])
	}
	replaced := map[hw.Sizes]float64{}
	for m, tokens := range counts {
		slices.Sort(tokens)
		for i, n := range tokens {
			at := hw.Sizes{n, m.columns, m.rows}
			if i+2 >= len(tokens) {
				break
			}
			var near []float64
			for _, j := range []int{i - 2, i - 1, i + 1, i + 2} {
				if j >= 0 {
					near = append(near, times[hw.Sizes{tokens[j], m.columns, m.rows}])
				}
			}
			slices.Sort(near)
			if usual := near[len(near)-1-len(near)/4]; times[at] > 1.5*usual {
				replaced[at] = usual
			}
		}
	}
	for at, t := range replaced {
		if slices.Contains(g.Axes[1].At, at[1]) && slices.Contains(g.Axes[2].At, at[2]) {
			times[at] = t
		} else {
			delete(times, at)
		}
	}
	if n := len(replaced); n > 0 {
		im.notes = append(im.notes, fmt.Sprintf("gemm of %s: %d times exceed those of nearby token "+
			"counts by half; these replace them in the grid", g.Type, n))
	}
}

// raggedTokens is the token axis of a ragged grid: token counts that are not multiples of 8.
var raggedTokens = []int64{9, 15, 17, 33, 65, 97, 113, 129, 193, 225, 257, 513, 769, 1025, 1281,
	1537, 1793, 2049, 2561, 3073, 3585, 4097}

// raggedGrid makes a second grid for token counts above 8 that are not multiples of 8, and removes
// them from times. It does so only if they take longer than the multiple of 8 below, because
// kernels with FP8 weights need aligned rows. A host-bound time is replaced by the time of the
// multiple below, multiplied by the median ratio of the other times.
func (im *importer) raggedGrid(kind string, times map[hw.Sizes]float64,
	rows []row[gemmColumns]) error {
	ragged := map[hw.Sizes]float64{}
	var hosted []hw.Sizes
	var longer []float64
	for at, t := range times {
		if over := math.Mod(at[0], 8); at[0] > 8 && over != 0 {
			ragged[at] = t
			before := times[hw.Sizes{at[0] - over, at[1], at[2]}]
			switch {
			case kind == "fp8_block" && im.hosted[at]:
				hosted = append(hosted, at)
			case before > 0 && at[1] >= 1024 && at[2] >= 1024:
				longer = append(longer, t/before)
			}
		}
	}
	if len(longer) == 0 || max(median(longer), ratio(times, 2048, 2049)) < 1.05 { // not worth a grid
		return nil
	}
	for _, at := range hosted {
		if t := times[hw.Sizes{at[0] - math.Mod(at[0], 8), at[1], at[2]}]; t > 0 {
			ragged[at] = t * median(longer)
		}
	}
	for at := range ragged {
		delete(times, at)
	}
	return im.grid(hw.Grid{Kernel: hw.GridRagged, Type: kind, Axes: []hw.Axis{
		axis("tokens", raggedTokens), axis("columns", gemmSides), axis("rows", gemmSides)}}, ragged,
		rows[0].common, kernelsOf(rows))
}

// aboveHost replaces host-bound times of FP8 GEMMs with block scales. The host launches several
// kernels per GEMM, so no GEMM is faster than the shortest one with as many tokens. The expected
// time is that of FP8 with one scale per matrix, multiplied by the median ratio of the two types
// over GEMMs that are not host-bound. A GEMM gets it, if it is shorter, where it is below the
// shortest time or the measured time is below twice the shortest.
func (im *importer) aboveHost(times map[hw.Sizes]float64) {
	shortest := map[float64]float64{}
	for at, t := range times {
		if s, ok := shortest[at[0]]; !ok || t < s {
			shortest[at[0]] = t
		}
	}
	var longer []float64
	for at, t := range times {
		if other, ok := im.fp8[at]; ok && t > 4*shortest[at[0]] {
			longer = append(longer, t/other)
		}
	}
	if len(longer) == 0 {
		return
	}
	by := median(longer)
	im.hosted = map[hw.Sizes]bool{}
	for at, t := range times {
		if other, ok := im.fp8[at]; ok && (t < 2*shortest[at[0]] || other*by < shortest[at[0]]) {
			times[at], im.hosted[at] = min(t, other*by), true
		}
	}
	im.notes = append(im.notes, fmt.Sprintf("GEMMs of fp8_block: fp8's times x %.3g replace %d of %d"+
		", which the host limits", by, len(im.hosted), len(times)))
}

// climbs returns the token counts that the grid keeps. It drops a count one above a tile if the
// time does not jump there, or if it exceeds the time of the next count. In the second case the
// count is slow because it is not aligned, not because it needs another tile.
func climbs(times map[hw.Sizes]float64) (tokens []int64) {
	have := map[int64]bool{}
	for at := range times {
		have[int64(at[0])] = true
	}
	measured := slices.DeleteFunc(slices.Clone(gemmTokens), func(m int64) bool { return !have[m] })
	for i, m := range measured {
		if m%8 == 1 && m > 1 && i+1 < len(measured) {
			climb, next := ratio(times, m-1, m), ratio(times, m-1, measured[i+1])
			if climb < 1.05 || climb > 1.02*next {
				continue
			}
		}
		tokens = append(tokens, m)
	}
	return tokens
}

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}

// ratio returns the median ratio of times with b tokens to times with a tokens; 0 if there are
// none.
func ratio(times map[hw.Sizes]float64, a, b int64) float64 {
	var all []float64
	for at, t := range times {
		if at[0] == float64(a) && at[1] >= 1024 && at[2] >= 1024 {
			if u, ok := times[hw.Sizes{float64(b), at[1], at[2]}]; ok {
				all = append(all, u/t)
			}
		}
	}
	if len(all) == 0 {
		return 0
	}
	return median(all)
}

func axis(size string, at []int64) hw.Axis {
	a := hw.Axis{Size: size}
	for _, v := range at {
		a.At = append(a.At, float64(v))
	}
	return a
}

// kernelsOf returns the kernel names of rows.
func kernelsOf[T any](rows []row[T]) (names []string) {
	for _, r := range rows {
		if !slices.Contains(names, r.Kernel) {
			names = append(names, r.Kernel)
		}
	}
	slices.Sort(names)
	return names
}

func source(c common, kernels []string, more string) string {
	text := fmt.Sprintf("AIConfigurator's tables of %s %s on an %s: ", c.Framework, c.Version,
		c.Device)
	for i, k := range kernels {
		if i > 0 {
			text += ", "
		}
		text += k
	}
	return text + more
}
