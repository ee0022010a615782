package hw

import "math"

// digest is the metadata of the blocks that a layer's tokens fill, a kernel for
// each request that fills any, right after their K and V were written.
//
//	t = requests launch + tokens K bytes / rate
//
// with the bytes of K of one token in one layer. 0 where the profile has no
// figures of it.
type digest struct {
	launch float64 // seconds
	each   float64 // seconds for each token
}

func newDigest(p *Profile, m *Model) digest {
	if !p.Digest.Rate.Set() {
		return digest{}
	}
	return digest{
		launch: p.Digest.Launch.optional(),
		each:   float64(m.LayerKVBytesPerToken()) / 2 / math.Min(p.Digest.Rate.SI(), p.GPU.HBMBandwidth.SI()),
	}
}

// seconds returns the time for the full blocks of some requests, their tokens
// summed.
func (d *digest) seconds(requests int, tokens int64) float64 {
	return float64(requests)*d.launch + float64(tokens)*d.each
}
