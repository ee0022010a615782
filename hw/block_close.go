package hw

import "math"

// blockClose is what a layer's blocks take that become full, right after their K and V
// were written: selection metadata, and the copy to the save buffer that frees their slots.
//
//	t = requests launch + bytes/rate, bytes of their K and V
//
// 0 where the profile has no figures of it.
type blockClose struct {
	launch, each float64 // seconds, seconds for each byte
	token        float64 // bytes of a token's K and V in one layer
}

func newBlockClose(p *Profile, m *Model) blockClose {
	if !p.BlockClose.Rate.Set() {
		return blockClose{}
	}
	return blockClose{
		launch: p.BlockClose.Launch.optional(), each: 1 / math.Min(p.BlockClose.Rate.SI(), p.GPU.HBMBandwidth.SI()),
		token: float64(m.LayerKVBytesPerToken()),
	}
}

// seconds returns the time for the full blocks of some requests, their tokens summed.
func (c *blockClose) seconds(requests int, tokens int64) float64 {
	return c.ofBytes(requests, float64(tokens)*c.token)
}

func (c *blockClose) ofBytes(requests int, bytes float64) float64 {
	return float64(requests)*c.launch + bytes*c.each
}

// BlockCloseSeconds returns the GPU's time in one layer for full blocks of some requests,
// their tokens summed.
func (p *Profile) BlockCloseSeconds(m *Model, requests int, tokens int64) float64 {
	c := newBlockClose(p, m)
	return c.seconds(requests, tokens)
}
