package calibrate

import (
	"gonum.org/v1/gonum/stat"

	"github.com/sparseserve/sparseserve/hw"
)

// fitLinearLaunch splits the time of a layer's matrices for one token, which reads all
// weights, into what its kernels take whatever they read and what they read: the
// intercept of a line through the shapes measured,
//
//	t = launch + bytes/rate
//
// Fewer than three shapes say nothing of it.
func fitLinearLaunch(s *Samples, p *hw.Profile, from source) {
	var bytes, seconds []float64
	for _, at := range s.of(probeLinears) {
		if at.At("tokens") == 1 {
			bytes = append(bytes, float64(at.model.LayerLinears()*int64(at.model.WeightBytesEach)))
			seconds = append(seconds, at.seconds)
		}
	}
	if len(bytes) < 3 {
		return
	}
	if launch, perByte := stat.LinearRegression(bytes, seconds, nil, false); launch > 0 && perByte > 0 {
		p.LinearLaunch = from.figure(launch*1e6, "us", "intercept of the times for one token over the bytes of each shape's weights")
	}
}
