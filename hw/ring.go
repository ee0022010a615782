package hw

import "math"

// ring is the GPU's copy of a layer's full blocks to the save buffer, which frees
// their slots: a kernel for each request that fills any, right after their K and V
// were written.
//
//	t = requests launch + bytes/rate
//
// 0 where the profile has no figures of it.
type ring struct{ launch, each float64 } // seconds, seconds for each byte

func newRing(p *Profile) ring {
	if !p.Save.RingRate.Set() {
		return ring{}
	}
	return ring{launch: p.Save.RingLaunch.optional(), each: 1 / math.Min(p.Save.RingRate.SI(), p.GPU.HBMBandwidth.SI())}
}

// seconds returns the time of the full blocks of some requests, at least one.
func (r *ring) seconds(requests int, bytes int64) float64 {
	return float64(max(1, requests))*r.launch + float64(bytes)*r.each
}

// RingSeconds returns the GPU's time to copy full blocks of some requests to the
// save buffer, their bytes summed.
func (p *Profile) RingSeconds(requests int, bytes int64) float64 {
	r := newRing(p)
	return r.seconds(requests, bytes)
}
