package calibrate

import (
	"fmt"
	"math"

	"sparseserve/hw"
)

// scatterFit is FlashD2H's
//
//	t = call + threads wake + (threads > 1) join + n block + min(B, near) / min(link, scatter) +
//	    max(0, B - near) / min(link, long) + min(B, chunk) / max(link, scatter)
//
// of B = n b bytes. A lone thread has nobody to share with; a save beyond near
// bytes uses its staging buffers again, which a few threads then empty slower.
type scatterFit struct{ call, wake, join, block, chunk, near float64 }

// scatterRate is the rate of some threads within near, and beyond.
type scatterRate struct{ near, long float64 }

func (f scatterFit) seconds(at datum, r scatterRate, link float64) float64 {
	bytes, threads := moved(at), float64(at.At("threads"))
	t := f.call + f.wake*threads + f.block*blocks(at) + math.Min(bytes, f.near)/math.Min(link, r.near) + math.Min(bytes, f.chunk)/math.Max(link, r.near)
	if threads > 1 {
		t += f.join
	}
	if bytes > f.near {
		t += (bytes - f.near) / math.Min(link, r.long)
	}
	return t
}

// scatterData is what the solvers share: the points, and those of each number
// of threads.
type scatterData struct {
	all     data
	threads []int64
	of      map[int64]data
	link    float64
}

// fitScatter fits FlashD2H: chunk and near by trial of powers of two, and for
// each the rest.
func fitScatter(s *Samples, p *hw.Profile, from source, link float64) model {
	fit, held := s.of(probeSaveFlash).split(func(at datum) string {
		return byAxis("threads")(at) + " " + byAxis("block_bytes")(at)
	}, 1, nil)
	d := scatterData{all: fit, threads: fit.values("threads"), of: map[int64]data{}, link: link}
	for _, n := range d.threads {
		d.of[n] = fit.where(func(at datum) bool { return at.At("threads") == n })
	}
	best, rates, least := scatterFit{}, map[int64]scatterRate{}, infinite
	try := func(chunk, near float64, rounds int) {
		f, r := d.with(chunk, near, rounds)
		if cost := d.cost(f, r); cost < least {
			best, rates, least = f, r, cost
		}
	}
	for chunk := 0.5 * mib; chunk <= 16*mib; chunk *= 2 {
		try(chunk, 48*mib, 2)
	}
	for _, near := range []float64{16 * mib, 32 * mib, 64 * mib} {
		try(best.chunk, near, 2)
	}
	try(best.chunk, best.near, 12)
	d.rising(rates)

	const what = "FlashD2H: "
	p.Save.FlashCall = from.figure(best.call*1e6, "us", what+"one copy into staging")
	p.Save.FlashWake = perBlock(best.wake, from, what+"waking a thread")
	p.Save.FlashJoin = perBlock(best.join, from, what+"sharing the work among more threads than one")
	p.Save.FlashBlock = perBlock(best.block, from, what+"the CPU's own time per block, which small blocks show")
	p.Save.FlashChunk = from.figure(best.chunk/mib, "MiB", what+"what is copied before the first block is scattered")
	p.Save.FlashNear = hw.Figure{}
	p.Save.Scatter = nil
	fewest := d.threads[0]
	for _, n := range d.threads {
		r := rates[n]
		row := hw.ScatterRow{Threads: int(n), Figure: from.figure(r.near*1e-9, "GB/s", what+"the CPU's scatter beside the copy, from the time of both")}
		if slower := math.Min(r.long, link) < 0.97*math.Min(r.near, link); slower {
			row.Long = from.figure(r.long*1e-9, "GB/s", what+"the same beyond flash_near")
			p.Save.FlashNear = from.figure(best.near/mib, "MiB", what+"after which few threads are slower, as staging is used again")
		}
		p.Save.Scatter = append(p.Save.Scatter, row)
		if math.Min(rates[n].near, link) > math.Min(rates[fewest].near, link)*1.02 {
			fewest = n
		}
	}
	p.Save.Threads = from.figure(float64(fewest), "threads", "the fewest beyond which saving gains no more than 2 %")
	return model{name: "save.scatter", fit: fit, held: held, draw: picture{x: moved, xLabel: "bytes saved", rate: moved},
		why: d.unlike(),
		price: func(p *hw.Profile, at datum) float64 {
			return priceSave(p, hw.SaveFlash, at.At("blocks"), at.At("block_bytes"), at.At("pool_mib"), at.At("threads"))
		}}
}

// with fits all but chunk and near: what is common to all threads and the
// threads' rates take turns.
func (d *scatterData) with(chunk, near float64, rounds int) (scatterFit, map[int64]scatterRate) {
	f, rates := scatterFit{20e-6, 1e-6, 1e-5, 1e-8, chunk, near}, map[int64]scatterRate{}
	within := []bound{{rateBound.low, 4 * d.link}, {rateBound.low, 4 * d.link}}
	for range rounds {
		for _, n := range d.threads {
			start := rates[n]
			if start.near == 0 {
				start = scatterRate{d.link / 2, d.link / 2}
			}
			r := refine(d.of[n], []float64{start.near, start.long}, within, func(r []float64, at datum) float64 {
				return f.seconds(at, scatterRate{r[0], r[1]}, d.link)
			})
			rates[n] = scatterRate{r[0], r[1]}
		}
		before := f
		c := refine(d.all, []float64{f.call, f.wake, f.join, f.block}, []bound{callBound, blockBound, callBound, blockBound}, func(c []float64, at datum) float64 {
			return scatterFit{c[0], c[1], c[2], c[3], chunk, near}.seconds(at, rates[at.At("threads")], d.link)
		})
		f.call, f.wake, f.join, f.block = c[0], c[1], c[2], c[3]
		if math.Abs(f.call/before.call-1) < 1e-3 && math.Abs(f.block/before.block-1) < 1e-3 && math.Abs(f.join/before.join-1) < 1e-3 {
			break
		}
	}
	return f, rates
}

// cost is the sum of squared log errors.
func (d *scatterData) cost(f scatterFit, rates map[int64]scatterRate) float64 {
	sum := 0.0
	for _, at := range d.all {
		sum += math.Pow(math.Log(f.seconds(at, rates[at.At("threads")], d.link)/at.seconds), 2)
	}
	return sum
}

// rising makes more threads never slower, within near and beyond; a rate beyond
// counts up to the link's.
func (d *scatterData) rising(rates map[int64]scatterRate) {
	near, long, alike := make([]float64, len(d.threads)), make([]float64, len(d.threads)), make([]float64, len(d.threads))
	for i, n := range d.threads {
		near[i], long[i], alike[i] = rates[n].near, math.Min(rates[n].long, d.link), 1
	}
	near, long = rising(near, alike), rising(long, alike)
	for i, n := range d.threads {
		rates[n] = scatterRate{near[i], long[i]}
	}
}

// unlike says how much longer the same bytes take as many threads in blocks of
// another size, where blocks are of 4 KiB and more and their size should not
// matter: the host's own noise, which lasts longer than a point.
func (d *scatterData) unlike() string {
	worst, text := 1.0, ""
	for _, a := range d.all {
		for _, b := range d.all {
			if a.At("block_bytes") < 4*kib || b.At("block_bytes") < 4*kib || a.At("threads") != b.At("threads") || moved(a) != moved(b) {
				continue
			}
			if r := a.seconds / b.seconds; r > worst {
				worst = r
				text = fmt.Sprintf("the same bytes on as many threads take up to %.2f times as long at another point: %s and %s; the host's CPUs", r, a.Key(), b.Key())
			}
		}
	}
	return text
}
