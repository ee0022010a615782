package calibrate

import (
	"math"

	"sparseserve/hw"
)

// callsFit is t = base + start min(1, b/whole) + n (call + more) + B/link, B = n b
// bytes, of transfers of one call a block. What a call takes more depends on how
// many there are: of loads early half/(n + half), as the first ones cost more, and
// of saves long n/(n + half), as those of a long batch do.
type callsFit struct {
	base, call, more, half, start, whole float64
	loads                                bool
}

func fitCalls(d data, link float64, loads bool) callsFit {
	fit := func(p []float64) callsFit { return callsFit{p[0], p[1], p[2], p[3], p[4], p[5], loads} }
	return fit(refine(d, []float64{5e-6, 2e-6, 3e-7, 200, 1e-6, 64 * kib}, []bound{callBound, blockBound, blockBound, {16, 1e4}, callBound, {4 * kib, mib}},
		func(p []float64, at datum) float64 { return fit(p).seconds(at, link) }))
}

func (f callsFit) seconds(at datum, link float64) float64 {
	n := blocks(at)
	more := f.more * n / (n + f.half)
	if f.loads {
		more = f.more * f.half / (n + f.half)
	}
	return f.base + f.start*math.Min(1, float64(at.At("block_bytes"))/f.whole) + n*(f.call+more) + moved(at)/link
}

// figures writes the fit into a profile; what comes to nothing is left out.
func (f callsFit) figures(from source, base, call, more, half, start, whole *hw.Figure) {
	*base = from.figure(f.base*1e6, "us", "submit and wait, once a batch of copies")
	*call = from.figure(f.call*1e6, "us", "a copy of its own for each block")
	what, where := "what a block of a long batch takes beside", "of a batch, at which half of memcpy_long is paid"
	if f.loads {
		what, where = "what each of a batch's first blocks takes beside", "of a batch, that have taken half of what all first ones take beside"
	}
	*more, *half = perBlock(f.more, from, what), hw.Figure{}
	if more.Set() {
		*half = from.figure(f.half, "blocks", where)
	}
	*start, *whole = perBlock(f.start, from, "what a batch of large blocks takes beside"), hw.Figure{}
	if start.Set() {
		*whole = from.figure(f.whole/kib, "KiB", "of a block, from which memcpy_start is paid whole")
	}
}

// byPool says whether copies were measured well enough over other pools than the
// base one to have a row for each: at two sizes, so that one can be held out.
func byPool(all data) bool {
	pools := all.values("pool_mib")
	for _, pool := range pools {
		if pool != basePool && len(inPool(all, pool)) < 2 {
			return false
		}
	}
	return len(pools) > 1
}

func inPool(d data, pool int64) data {
	return d.where(func(at datum) bool { return at.At("pool_mib") == pool })
}

// splitCopies holds out points of each pool where pools have rows.
func splitCopies(all data) (fit, held data) {
	if byPool(all) {
		return all.split(func(at datum) string { return byAxis("pool_mib")(at) + " " + byAxis("block_bytes")(at) }, 1, nil)
	}
	return all.split(byAxis("block_bytes"), 2, nil)
}

// fitCopies fits the calls at the base pool where others have rows, and over
// all pools alike where not.
func fitCopies(all, fit data, link float64, loads bool) callsFit {
	if byPool(all) {
		fit = inPool(fit, basePool)
	}
	return fitCalls(fit, link, loads)
}

// poolRows finds what a call takes over each pool, all else as over the base
// pool. It does not fall from pool to pool: the engine looks more addresses up.
func (f callsFit) poolRows(all, fit data, link float64, from source) []hw.PoolTime {
	if !byPool(all) {
		return nil
	}
	pools := fit.values("pool_mib")
	var values, weights []float64
	for _, pool := range pools {
		d := inPool(fit, pool)
		more := 0.0
		if pool != basePool {
			more = weighted(d, func(at datum) (rest, factor float64) { return at.seconds - f.seconds(at, link), blocks(at) }, callBound.low-f.call)
		}
		values, weights = append(values, f.call+more), append(weights, float64(len(d)))
	}
	var rows []hw.PoolTime
	for i, call := range rising(values, weights) {
		rows = append(rows, hw.PoolTime{PoolGiB: float64(pools[i]) / 1024, Figure: from.figure(call*1e6, "us", "a copy of its own for each block, anywhere in a pinned pool of this size")})
	}
	return rows
}
