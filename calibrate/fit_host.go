package calibrate

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"sparseserve/hw"
)

// fitHost fits what a layer's round trip between GPU and CPU costs, t = sync +
// bytes/rate: a selection comes down, block tables go up, each waited for, up to
// 64 KiB, the lists of 8 requests of 32 heads. A copy takes either of two times,
// 9 and 17 us on an H200, the longer one more often when it is larger: what
// many layers pay is the mean.
//
// Of a step it knows the least that a loop pays, one launch and one
// synchronisation; fitLive measures the loop.
func fitHost(s *Samples, p *hw.Profile, from source) []model {
	up := map[int64]float64{}
	for _, r := range s.Records {
		if r.Point.Probe == probeUp {
			up[r.Point.At("bytes")] = typicalMean(r.Samples)
		}
	}
	var both data
	for _, r := range s.Records {
		if r.Point.Probe != probeDown || r.Point.At("bytes") > 64*kib {
			continue
		}
		if t, ok := up[r.Point.At("bytes")]; ok {
			both = append(both, datum{Point: r.Point, seconds: typicalMean(r.Samples) + t})
		}
	}
	if sync := s.of(probeSync); len(sync) > 0 {
		p.Host.Step = from.figure(sync[0].seconds*1e6, "us", "submitting one kernel and synchronising, the least that a loop pays between two steps' kernels")
	}
	bytes := func(at datum) float64 { return float64(at.At("bytes")) }
	fit, held := both.split(together, 2, nil)
	c := linear(fit, one, bytes)
	p.Host.LayerSync = from.figure(math.Max(c[0], callBound.low)*1e6, "us", "a layer's selection copied down and its block tables up, 8 to 64 KiB, each waited for: mean")
	p.Host.LayerRate, p.Host.LayerRequest = hw.Figure{}, hw.Figure{}
	if c[1] > 0 {
		p.Host.LayerRate = from.figure(1/c[1]*1e-9, "GB/s", "the same, by the bytes of the lists")
	}
	return []model{{name: "host.layer_sync", fit: fit, held: held,
		price: func(p *hw.Profile, at datum) float64 { return p.LayerSyncSeconds(0, at.At("bytes")) },
		draw:  picture{x: bytes, xLabel: "bytes each way"}}}
}

// fitLists fits what a layer's lists take of the GPU's time where they go up
// between two of its kernels, t = copy + bytes/rate, by a kernel that reads them
// from pinned memory: one more launch gap and a round trip over the link, then
// the bytes. Behind a layer's weights its own code comes from HBM too.
func fitLists(s *Samples, p *hw.Profile, from source) {
	bytes, what := func(at datum) float64 {
		return float64(4 * at.At("requests") * int64(at.model.KVHeads) * liveBudget / blockTokens)
	}, "the kernel that brings a layer's lists to the GPU, behind the layer's weights"
	with := s.behind(probeBehindLists, probeBehindNone)
	if len(with) < 2 {
		without := s.of(probePair)
		if with = s.of(probeBetween); len(without) == 0 || len(with) < 2 {
			return
		}
		for i := range with {
			with[i].seconds -= without[0].seconds
		}
		bytes, what = func(at datum) float64 { return float64(at.At("bytes")) }, "the kernel that brings a layer's lists to the GPU, between two others"
	}
	c := linear(with, one, bytes)
	p.Host.ListCopy = perBlock(c[0], from, what)
	p.Host.ListRate = hw.Figure{}
	if p.Host.ListCopy.Set() && c[1] > 0 {
		p.Host.ListRate = from.figure(1/c[1]*1e-9, "GB/s", what)
	}
}

// fitKVWrite takes what the write of decodes' K and V takes of the GPU's time as
// a kernel of its own, from the same linears before it, or the same two kernels
// around it.
func fitKVWrite(s *Samples, p *hw.Profile, from source) {
	p.Host.KVWrite = hw.Figure{}
	var more []float64
	for _, at := range s.behind(probeBehindWrite, probeBehindLists) {
		more = append(more, at.seconds)
	}
	if len(more) > 0 {
		p.Host.KVWrite = perBlock(medianOf(more).Value, from, "the kernel that writes K and V of up to 16 decodes to their blocks, behind the layer's weights")
		return
	}
	without := s.of(probePair)
	if len(without) == 0 {
		return
	}
	for _, at := range s.of(probeKVWrite) {
		more = append(more, at.seconds-without[0].seconds)
	}
	if len(more) > 0 {
		p.Host.KVWrite = perBlock(medianOf(more).Value, from, "the kernel that writes K and V of up to 64 decodes to their blocks, between two others")
	}
}

// fitVerdict takes how long the CPU needs to hear of a kernel's end and have the
// next one under way: what it pays to submit one and wait for it; and what it
// pays for the first of these alone; and what the calls for one launch of
// progressive attention that loads take, one launch after another.
func fitVerdict(s *Samples, p *hw.Profile, from source) {
	p.Host.Verdict, p.Host.Submit, p.Host.PSALaunchCalls = hw.Figure{}, hw.Figure{}, hw.Figure{}
	if turns := s.of(probePSALaunchCalls); len(turns) > 0 {
		p.Host.PSALaunchCalls = perBlock(shareOf(turns, one), from, "the calls for one launch of PSA that loads, one launch after another")
	}
	if submit := s.of(probeSubmit); len(submit) > 0 {
		p.Host.Submit = perBlock(submit[0].seconds, from, "submitting one kernel")
	}
	if sync := s.of(probeSync); len(sync) > 0 {
		p.Host.Verdict = perBlock(sync[0].seconds, from, "submitting one kernel and synchronising")
	}
}

// typicalMean is the mean without samples of three times the median and more,
// in which something else happened.
func typicalMean(samples []float64) float64 {
	limit := 3 * medianOf(samples).Value
	sum, n := 0.0, 0
	for _, s := range samples {
		if s < limit {
			sum += s
			n++
		}
	}
	return sum / float64(n)
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
	notes = append(notes, unsteady(s)...)
	notes = append(notes, pools(s)...)
	notes = append(notes, hostOfLoads(s)...)
	pointwise := s.of(probePointwise).shapes()
	for _, shape := range s.of(probeLinears).shapes() {
		if !slices.Contains(pointwise, shape) {
			notes = append(notes, "pointwise of "+shape+" is scaled from another shape by bytes: the rope kernel takes heads of 64 and 128")
		}
	}
	return append(notes, slowdowns(s)...)
}

// pools says what the largest host pool does to the engines whose models do not
// know of it.
func pools(s *Samples) []string {
	var notes []string
	for _, probe := range []string{probeLoadMemcpy, probeLoadBatched, probeSaveMemcpy, probeSaveGPU, probeSaveFlash} {
		all := s.of(probe)
		sizes := all.values("pool_mib")
		if len(sizes) == 0 || sizes[len(sizes)-1] == basePool {
			continue
		}
		most := sizes[len(sizes)-1]
		base := map[string]float64{}
		for _, at := range all {
			if at.At("pool_mib") == basePool {
				base[otherAxes(at, "pool_mib")] = at.seconds
			}
		}
		for _, at := range all {
			if t, ok := base[otherAxes(at, "pool_mib")]; ok && at.At("pool_mib") == most {
				notes = append(notes, fmt.Sprintf("%s over a pool of %s, over the same of %s: %.2f", probe, size(most*mib), size(basePool*mib), at.seconds/t))
			}
		}
	}
	return notes
}

// otherAxes names a point but for one size.
func otherAxes(at datum, but string) string {
	var parts []string
	for _, a := range at.Axes {
		if a.Name != but {
			parts = append(parts, fmt.Sprint(a))
		}
	}
	return strings.Join(parts, " ")
}
