package calibrate

import (
	"fmt"
	"math"

	"github.com/sparseserve/sparseserve/hw"
)

// Costs that no figure of a profile gives.
const (
	fakeSubmit = 4.8e-6
	fakeRope   = 1e-9   // of a token
	fakeAlone  = 1.2e-6 // of compute, of a token
)

// seconds is the time of a point on the machine.
func (t *machine) seconds(p Point, m *hw.Model) float64 {
	at := func(axis string) float64 { return float64(p.At(axis)) }
	blocks := func() (n, bytes float64) { return at("blocks"), at("blocks") * at("block_bytes") }
	switch p.Probe {
	case probeSync:
		return t.sync
	case probeH2D:
		return t.copies(t.load, 1, at("bytes"), 0, t.h2d)
	case probeD2H:
		return t.copies(t.save, 1, at("bytes"), 0, t.d2h)
	case probeDuplexCopy:
		return 2 * at("bytes") / t.duplexCopy
	case probeDuplexKernel:
		return 2 * at("bytes") / t.duplexK
	case probeLoadMemcpy:
		n, bytes := blocks()
		return t.copies(t.load, n, bytes, t.callMore*doublings(p.At("pool_mib")), t.h2d)
	case probeSaveMemcpy:
		n, bytes := blocks()
		return t.copies(t.save, n, bytes, 0, t.d2h)
	case probeLoadFlash:
		_, bytes := blocks()
		k := t.gather
		k.rate -= t.gatherFalls * doublings(p.At("pool_mib"))
		return k.seconds(bytes, t.h2d)
	case probeChunkAlone:
		return fakeAlone * at("chunk_tokens")
	case probeChunkLoading:
		return fakeAlone*at("chunk_tokens") + t.loadDelay
	case probeChunkSaving:
		return fakeAlone * at("chunk_tokens") / (1 - t.contention)
	case probeLoadComputed:
		return t.gather.seconds(overlappedBlocks*overlappedBytes, t.h2d) /
			(1 - t.loading)
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
	case probeGather:
		return t.tensorsLaunch + 2*at("tokens")*kvToken(m)/t.tensorsRate
	case probeAShape, probeLists:
		return t.sparseAttention(p, m)
	case probeLineIndex, probeBlockIndex:
		return t.sparseIndex(p, m)
	case probeDense:
		return t.denseDecode(m, at("batch"), at("batch")*at("context_tokens"))
	case probeShared:
		return t.sharedDecode(m, at("batch"), at("context_tokens"), at("shared_tokens"))
	case probeSparse:
		return t.sparseDecode(m, at("batch"), at("batch")*at("budget_tokens"))
	case probeSelect:
		return t.scores(m, at("batch"), at("batch")*at("context_tokens")/blockTokens)
	case probePSA, probePSALaunches, probePSAUneven:
		return t.psaPoint(p, m)
	case probeRope:
		return 2*fakeSubmit + fakeRope*at("tokens")
	case probeClose:
		return 2*fakeSubmit + fakeRope*at("tokens") + t.closeLaunch + at("tokens")*kvToken(m)/t.closeRate
	case probeAfterDecodes:
		return t.linears(m, at("tokens")) * (1 - t.gainAt(p.Shape, p.At("tokens")))
	case probeClock, probeChunk:
		return t.clockPoint(p, m)
	}
	panic(fmt.Sprintf("no cost of %s", p.Key()))
}

// copies returns the time of n copies of B bytes in all:
//
//	t = base + n (call + more) + B/link
func (t *machine) copies(c copyLaw, n, bytes, more, link float64) float64 {
	return c.base + n*(c.call+more) + bytes/link
}

// seconds is t = max(floor, launch + B/rate, B/link).
func (k kernelLaw) seconds(bytes, link float64) float64 {
	return max(k.floor, k.launch+bytes/k.rate, bytes/link)
}

// stagedSave is t = call + B/min(link, r) + min(B, chunk)/max(link, r), r of all threads.
func (t *machine) stagedSave(bytes, threads float64) float64 {
	r := t.scatterRate(threads)
	return t.flashCall + bytes/min(t.d2h, r) + min(bytes, t.chunk)/max(t.d2h, r)
}

func (t *machine) scatterRate(threads float64) float64 { return t.thread * math.Pow(threads, 0.7) }
