package hw

import (
	"github.com/sparseserve/sparseserve/sim"
	"math"
)

// blockClose is the time of a layer's blocks that become full, right after their K and V
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
		launch: p.BlockClose.Launch.optional(),
		each:   1 / math.Min(p.BlockClose.Rate.SI(), p.GPU.HBMBandwidth.SI()),
		token:  float64(m.LayerKVBytesPerToken()),
	}
}

// Seconds implements Cost.
func (c *blockClose) Seconds(w *sim.Work) (s float64, beyond bool) {
	return c.ofBytes(w.Digests, float64(w.DigestTokens)*c.token), false
}

func (c *blockClose) ofBytes(requests int, bytes float64) float64 {
	return float64(requests)*c.launch + bytes*c.each
}
