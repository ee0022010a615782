package calibrate

import (
	"fmt"
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/hw"
)

// flashD2H is saving with one copy into staging, which CPU threads scatter.
type flashD2H struct{}

const probeSaveFlash = "save.flash"

func (flashD2H) probes() []Probe {
	return []Probe{{Name: probeSaveFlash, setup: (*gpuRun).setupSave,
		Means: "FlashD2H, one copy and the CPU's scatter to blocks anywhere in a pinned pool, " +
			"overlapped; until every block is written",
		Axes:   []string{"block_bytes", "blocks", "pool_mib", "threads"},
		needed: true, again: always}}
}

func (flashD2H) points(p *planner) {
	for _, threads := range p.threads() {
		p.eachTransfer(func(block, n int64) {
			// Small counts of blocks cost only the call; a layer of a chunk has thousands.
			if n*block <= mostScattered && n >= 256 {
				p.add(stageFlashD2H, point(probeSaveFlash, "", block, n, basePool, threads))
			}
		})
	}
}

// threads returns thread counts up to the number of CPUs, which is included.
func (p *planner) threads() (threads []int64) {
	for _, n := range pick(p, []int64{1, 2, 4, 8, 12, 16, 24, 32, 48, 64}, []int64{1, 4, 8, 16}) {
		if n < int64(p.limits.Threads) {
			threads = append(threads, n)
		}
	}
	return append(threads, int64(p.limits.Threads))
}

func (flashD2H) fit(s *Samples, p *hw.Profile, from source) []model {
	return []model{fitScatter(s, p, from, math.Min(p.Link.D2H.SI(), p.Link.Nominal.SI()))}
}

// mostScattered is the largest save in the fit of FlashD2H, in bytes: a layer of 4,096 tokens with
// 32 KV heads. Larger saves exceed the CPU's caches, and one thread scatters them more slowly.
const mostScattered = 64 * mib

// fitScatter fits FlashD2H (hw: saver). All thread counts share the call and the first chunk and
// are fitted together:
//
//	t = call + B/min(link, rate(threads)) + min(B, chunk)/max(link, rate(threads))
func fitScatter(s *Samples, p *hw.Profile, from source, link float64) model {
	all := s.of(probeSaveFlash).where(func(at observation) bool { return moved(at) <= mostScattered })
	fit, held := all.split(func(at observation) string {
		return byAxis("threads")(at) + " " +
			byAxis("block_bytes")(at)
	}, 1, nil)
	threads := fit.values("threads")
	law := func(call, chunk, rate float64, at observation) float64 {
		return call + moved(at)/math.Min(link, rate) + math.Min(moved(at), chunk)/math.Max(link, rate)
	}
	rateOf := func(common []float64, n int64) float64 {
		of := fit.where(func(at observation) bool { return at.At("threads") == n })
		return refine(of, []float64{link / 2}, []bound{{rateBound.low, mostRate * link}},
			func(r []float64, at observation) float64 {
				return law(common[0], common[1], r[0], at)
			})[0]
	}
	rates, seen := make([]float64, len(threads)), []float64(nil)
	price := func(c []float64, at observation) float64 {
		if !slices.Equal(seen, c) {
			seen = slices.Clone(c)
			for i, n := range threads {
				rates[i] = rateOf(c, n)
			}
		}
		return law(c[0], c[1], rates[slices.Index(threads, at.At("threads"))], at)
	}
	// There is a second optimum if one thread is slower than the link and many are faster.
	common, least := []float64(nil), math.Inf(1)
	for _, chunk := range []float64{mib, 8 * mib} {
		c, left := refined(fit, []float64{50e-6, chunk},
			[]bound{callBound, {64 * kib, mostScattered / 4}}, price)
		if left < least {
			common, least = c, left
		}
	}
	for i, n := range threads {
		rates[i] = rateOf(common, n)
	}
	alike := make([]float64, len(threads))
	for i := range alike {
		alike[i] = 1
	}
	rates = rising(rates, alike) // more threads are never slower

	const what = "FlashD2H: "
	p.Save.FlashCall = from.us(common[0],
		what+"one copy into staging, and the threads' way to work and back")
	p.Save.FlashChunk = from.figure(
		common[1]/mib, "MiB", what+"what is copied before the CPU begins, or scattered after the last "+
			"copy")
	p.Save.Scatter = nil
	for i, n := range threads {
		p.Save.Scatter = append(p.Save.Scatter,
			hw.ScatterRow{Threads: int(n),
				Figure: from.gbps(rates[i], what+"the CPU's scatter")})
	}
	return model{name: "save.scatter", fit: fit, held: held,
		draw: picture{x: moved, xLabel: "bytes saved", rate: moved},
		why:  unlike(fit),
		price: func(p *hw.Profile, at observation) float64 {
			return priceSave(p, hw.SaveFlash, at.At("blocks"), at.At("block_bytes"), at.At("pool_mib"),
				at.At("threads"))
		}}
}

// mostRate limits a scatter's rate relative to the link's: saves do not show a higher rate.
const mostRate = 4

// unlike describes the largest ratio of times for the same bytes and threads with another block
// size. At 4 KiB and more the block size should not matter, so the ratio shows host noise that
// lasts longer than a point.
func unlike(d data) string {
	worst, text := 1.0, ""
	for _, a := range d {
		for _, b := range d {
			if a.At("block_bytes") < 4*kib || b.At("block_bytes") < 4*kib ||
				a.At("threads") != b.At("threads") || moved(a) != moved(b) {
				continue
			}
			if r := a.seconds / b.seconds; r > worst {
				worst = r
				text = fmt.Sprintf("the same bytes on as many threads take up to %.2f times as long at "+
					"another point: %s and %s; the host's CPUs", r, a.Key(), b.Key())
			}
		}
	}
	return text
}
