package hw

import (
	"math"

	"github.com/sparseserve/sparseserve/sim"
)

// blockClose is the time of a layer's blocks that become full, right after their K and V
// were written: selection metadata, and the copy to the save buffer that frees their slots. Both
// were measured in one row, of which each is a launch, and live on bytes of HBM: a digest reads K,
// a copy reads and writes K and V.
//
//	t_both   = requests launch + bytes/rate, bytes of their K and V
//	t_digest = requests launch/2 + bytes/rate digestShare
//	t_copy   = requests launch/2 + bytes/rate (1 - digestShare)
//
// Blocks of a prefix are digested and not saved, and where KV stays in HBM none is. 0 where the
// profile has no figures of it.
type blockClose struct {
	launch, each float64 // seconds, seconds for each byte
	token        float64 // bytes of a token's K and V in one layer
}

// digestShare is what a digest moves of the bytes that it and the copy move: 0.5 of 2.5 for each
// byte of K and V.
const digestShare = 0.5 / 2.5

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

// Seconds implements Cost: of both, as they were measured.
func (c *blockClose) Seconds(w *sim.Work) (s float64, beyond bool) {
	return c.digest(w) + c.save(w.Digests, float64(w.DigestTokens)*c.token), false
}

// digest is the time of a layer's selection metadata.
func (c *blockClose) digest(w *sim.Work) float64 {
	return float64(w.Digests)*c.launch/2 + float64(w.DigestTokens)*c.token*c.each*digestShare
}

// save is that of the copy of so many bytes to the save buffer.
func (c *blockClose) save(requests int, bytes float64) float64 {
	return float64(requests)*c.launch/2 + bytes*c.each*(1-digestShare)
}
