package calibrate

import "github.com/sparseserve/sparseserve/hw"

// fitWaits finds what a call of the driver takes longer while another thread
// saves blocks one by one: calls of two threads queue for the driver's lock.
//
//	t = alone + (launches + copies) wait
func fitWaits(s *Samples, p *hw.Profile, from source) {
	p.Host.CallWait = hw.Figure{}
	alone := map[string]float64{}
	for _, at := range s.of(probeCallsNone) {
		alone[at.Sizes()] = at.seconds
	}
	var waits []float64
	for _, at := range s.of(probeCallsSave) {
		if t, ok := alone[at.Sizes()]; ok {
			waits = append(waits, (at.seconds-t)/float64(at.At("launches")+at.At("copies")))
		}
	}
	if len(waits) > 0 {
		if wait := medianOf(waits).Value; wait > 0 {
			p.Host.CallWait = from.figure(wait*1e6, "us", "a launch or small copy beside a thread that saves with a memcpy a block, over the same alone")
		}
	}
}
