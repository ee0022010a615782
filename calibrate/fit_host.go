package calibrate

import (
	"fmt"

	"sparseserve/hw"
)

// fitHost finds what a layer's round trip between GPU and CPU costs: a
// selection comes down, block tables go up, each waited for. Up to 64 KiB, the
// lists of 8 requests of 32 heads, size matters little; at 128 KiB
// a copy to the GPU takes half as long again.
func fitHost(s *Samples, p *hw.Profile, from source) []model {
	up := map[int64]float64{}
	for _, at := range s.of(probeUp) {
		up[at.At("bytes")] = at.seconds
	}
	var both data
	for _, at := range s.of(probeDown) {
		if t, ok := up[at.At("bytes")]; ok && at.At("bytes") <= 64*kib {
			at.seconds += t
			both = append(both, at)
		}
	}
	fit, held := both.split(together, 1, nil)
	var times []float64
	for _, at := range fit {
		times = append(times, at.seconds)
	}
	p.Host.LayerSync = from.figure(medianOf(times).Value*1e6, "us", "a layer's selection copied down and its block tables up, 8 to 64 KiB, each waited for")
	return []model{{name: "host.layer_sync", flat: true, fit: fit, held: held,
		price: func(p *hw.Profile, _ datum) float64 { return p.Host.LayerSync.SI() },
		draw:  picture{x: func(at datum) float64 { return float64(at.At("bytes")) }, xLabel: "bytes each way"}}}
}

// observations are figures that no cost model needs, in words.
func observations(s *Samples) []string {
	var notes []string
	for _, o := range []struct{ probe, what string }{{probeSubmit, "submit"}, {probeSync, "submit and synchronise"}} {
		for _, at := range s.of(o.probe) {
			notes = append(notes, fmt.Sprintf("an empty kernel, %s: %.1f us", o.what, at.seconds*1e6))
		}
	}
	fastest := 0.0
	for _, at := range s.of(probeHBM) {
		fastest = max(fastest, 2*float64(at.At("bytes"))/at.seconds)
	}
	if fastest > 0 {
		notes = append(notes, fmt.Sprintf("copy within HBM, read and written: %.2f TB/s", fastest*1e-12))
	}
	contiguous := map[string]float64{}
	for _, at := range s.of(probePrefill) {
		if at.At("prefix_tokens") == 0 {
			contiguous[fmt.Sprint(at.Shape, at.At("query_tokens"))] = at.seconds
		}
	}
	var ratios []float64
	for _, at := range s.of(probeChunked) {
		if t, ok := contiguous[fmt.Sprint(at.Shape, at.At("prompt_tokens"))]; ok && at.At("chunk_tokens") == at.At("prompt_tokens") {
			ratios = append(ratios, at.seconds/t)
		}
	}
	if len(ratios) > 0 {
		notes = append(notes, fmt.Sprintf("prefill attention with K and V in KV blocks over contiguous K and V: %.2f (median of %d prompts)", medianOf(ratios).Value, len(ratios)))
	}
	return append(notes, slowdowns(s)...)
}
