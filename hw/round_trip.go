package hw

import "github.com/sparseserve/sparseserve/hw/llm"

// roundTrip models the delay of a layer between selection and loading: the lists of selected blocks
// go down to the CPU, and block tables of the same size come back.
//
//	t = layer_sync + bytes/layer_rate, bytes = 4 KVHeads selected/32
//
// with selected tokens summed over requests, in blocks of 32.
type roundTrip struct {
	sync, rate float64 // seconds, bytes/s; rate 0: bytes cost nothing
}

func newRoundTrip(p *Profile) roundTrip {
	return roundTrip{sync: p.Host.LayerSync.SI(), rate: p.Host.LayerRate.optional()}
}

// of returns the seconds of one layer's round trip for the given bytes of lists.
func (r *roundTrip) of(bytes float64) float64 {
	if r.rate == 0 {
		return r.sync
	}
	return r.sync + bytes/r.rate
}

// ListBytes returns the bytes of one layer's lists when decodes select the given tokens per KV
// head: 4 for each block of 32. With offloading, the same number of bytes of slots comes back.
// Loaded blocks add 16 bytes each, which is negligible.
func ListBytes(m *llm.Model, selected float64) float64 {
	return selected * 4 * float64(m.KVHeads) / 32
}
