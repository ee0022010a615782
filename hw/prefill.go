package hw

import (
	"math"

	"sparseserve/sim"
)

// prefillAttention is one layer's causal attention of prompt chunks, all
// requests in one kernel.
//
//	t = max_i launch(q_i) + sum_i FLOPs_i / rate(q_i)
//	FLOPs = 4 d H (q prefix + q^2 / 2)
//
// with q query tokens after prefix earlier ones, H query heads of size d.
// launch and rate are read at q in log q; so efficiency FLOPs/(t peak) rises
// with both q and the KV length. Never below FLOPs at peak, nor below the
// K and V of prefix and chunk at HBM bandwidth.
type prefillAttention struct {
	peak    peak
	launch  curve // query tokens, seconds
	rate    curve // query tokens, FLOP/s
	flops   float64
	kvBytes float64 // of one token in one layer
}

func newPrefillAttention(p *Profile, m *Model) prefillAttention {
	a := prefillAttention{
		peak:    p.peak(),
		flops:   4 * float64(m.HeadDim*m.QHeads),
		kvBytes: float64(m.LayerKVBytesPerToken()),
	}
	for _, r := range p.Prefill {
		a.launch.add(float64(r.Query), r.Launch.SI())
		a.rate.add(float64(r.Query), r.Rate.SI())
	}
	return a
}

// spanFLOPs returns the FLOPs of one request's chunk.
func (a *prefillAttention) spanFLOPs(s sim.Span) float64 {
	q := float64(s.Query)
	return a.flops * (q*float64(s.Prefix) + q*q/2)
}

// seconds returns the time of all spans, and the shortest query below the
// rows, 0 if none is. Queries longer than the rows run at the last rate, which
// has levelled off there.
func (a *prefillAttention) seconds(spans []sim.Span) (t float64, short int) {
	launch := 0.0
	for _, s := range spans {
		if s.Query <= 0 {
			continue
		}
		q, flops := float64(s.Query), a.spanFLOPs(s)
		l, _ := a.launch.logLinear(q)
		r, _ := a.rate.power(q)
		launch = math.Max(launch, l)
		t += math.Max(flops/r, a.peak.floor(flops, (q+float64(s.Prefix))*a.kvBytes))
		if q < a.rate.x[0] && (short == 0 || s.Query < short) {
			short = s.Query
		}
	}
	return t + launch, short
}
