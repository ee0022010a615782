package hw

import (
	"math"

	"github.com/sparseserve/sparseserve/sim"
)

// blockClose models the work for a layer's filled blocks, right after their K and V are written:
// selection metadata (digest), and the copy to the save buffer that frees their slots. Both were
// measured together. Each is one launch and bound by HBM bytes: a digest reads K; a copy reads and
// writes K and V.
//
//	t_both   = requests launch + bytes/rate, bytes of their K and V
//	t_digest = requests launch/2 + bytes/rate digestShare
//	t_copy   = requests launch/2 + bytes/rate (1 - digestShare)
//
// Blocks of a prefix are digested and not saved. If KV stays in HBM, no block is saved. The time is
// 0 if the profile has no figures.
type blockClose struct {
	launch, each float64 // seconds, seconds per byte
	token        float64 // bytes of a token's K and V in one layer
}

// digestShare is the digest's share of the bytes that digest and copy move: 0.5 of 2.5 per byte of
// K and V.
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

// Seconds implements Cost: digest and copy, as they were measured.
func (c *blockClose) Seconds(w *sim.Work) (s float64, beyond bool) {
	return c.digest(w) + c.save(w.Digests, float64(w.DigestTokens)*c.token), false
}

// digest returns the seconds of a layer's selection metadata.
func (c *blockClose) digest(w *sim.Work) float64 {
	return float64(w.Digests)*c.launch/2 + float64(w.DigestTokens)*c.token*c.each*digestShare
}

// save returns the seconds of copying bytes to the save buffer.
func (c *blockClose) save(requests int, bytes float64) float64 {
	return float64(requests)*c.launch/2 + bytes*c.each*(1-digestShare)
}
