package calibrate

import (
	"fmt"
	"math"

	"github.com/sparseserve/sparseserve/hw/llm"
)

// Costs that no figure of a profile gives.
const (
	fakeAlone = 1.2e-6 // of compute, of a token
)

// seconds is the time of a point on the machine.
func (t *machine) seconds(p Point, m *llm.Model) float64 {
	at := func(axis string) float64 { return float64(p.At(axis)) }
	blocks := func() (n, bytes float64) { return at("blocks"), at("blocks") * at("block_bytes") }
	switch p.Probe {
	case probeSync:
		return t.sync
	case probeH2D:
		return t.load + at("bytes")/t.h2d
	case probeD2H:
		return t.save + at("bytes")/t.d2h
	case probeDuplex:
		return 2 * (at("copied_bytes")/t.duplexCopy + at("kernel_bytes")/t.duplexK)
	case probeLoadMemcpy:
		n, bytes := blocks()
		return n*t.load + bytes/t.h2d
	case probeSaveMemcpy:
		n, bytes := blocks()
		return n*t.save + bytes/t.d2h
	case probeLoadFlash:
		_, bytes := blocks()
		k := t.gather
		k.rate -= t.gatherFalls * doublings(p.At("pool_mib"))
		return k.seconds(bytes, t.h2d)
	case probeOverlap:
		s := fakeAlone * at("chunk_tokens")
		if at("saved_blocks") > 0 {
			s /= 1 - t.contention
		}
		return s + t.loadDelay*min(1, at("loaded_blocks"))
	case probeSwap:
		rows := at("requests") * at("misses")
		walks := math.Ceil(at("requests")/fakeSMs) * at("slots") / 1024
		bytes := rows * at("row_bytes")
		return math.Max(t.swap.launch+walks*t.swap.scan+
			math.Max(bytes/t.swap.rate, bytes/at("requests")/t.swap.request), bytes/t.h2d)
	case probeSaveGPU:
		_, bytes := blocks()
		return t.scatter.seconds(bytes, t.d2h)
	case probeSaveFlash:
		_, bytes := blocks()
		return t.stagedSave(bytes, at("threads"))
	case probeLinears:
		return t.linears(m, at("tokens"))
	case probePointwise:
		return t.pointwise(m, at("tokens"))
	case probeInPlace:
		return t.between(m, at("tokens"))
	case probePrefill:
		return t.prefill(m, at("query_tokens"), at("prefix_tokens"), blockTokens)
	case probePrefillBlocks:
		return t.prefill(m, at("query_tokens"), at("prefix_tokens"), at("block_tokens"))
	case probeSparseAttention:
		return t.sparseAttention(p, m)
	case probeSparseIndex:
		return t.sparseIndex(p, m)
	case probeDense:
		return t.denseDecode(m, at("batch"), at("batch")*at("context_tokens"))
	case probeShared:
		return t.sharedDecode(m, at("batch"), at("context_tokens"), at("shared_tokens"))
	case probeSparse:
		return t.sparseDecode(m, at("batch"), at("batch")*at("budget_tokens"))
	case probeSelect:
		return t.scores(m, at("batch"), at("batch")*at("context_tokens")/blockTokens)
	case probeAfterDecodes:
		return t.linears(m, at("tokens")) * (1 - t.gainAt(p.Shape, p.At("tokens")))
	case probeClock, probeChunk:
		return t.clockPoint(p, m)
	}
	panic(fmt.Sprintf("no cost of %s", p.Key()))
}

// seconds is t = max(floor, launch + B/rate, B/link).
func (k kernelLaw) seconds(bytes, link float64) float64 {
	return max(k.floor, k.launch+bytes/k.rate, bytes/link)
}

// stagedSave is t = call + B/r, r of all threads.
func (t *machine) stagedSave(bytes, threads float64) float64 {
	return t.flashCall + bytes/t.scatterRate(threads)
}

func (t *machine) scatterRate(threads float64) float64 {
	return min(t.d2h, t.thread*math.Pow(threads, 0.7))
}
