package hw

// roundTrip is a layer's way from selection to loading: the lists of selected
// blocks come down to the CPU, and block tables of the same size go up.
//
//	t = layer_sync + requests layer_request + bytes/layer_rate, bytes = 4 KVHeads selected/32
//
// with the selected tokens summed over requests, in blocks of 32.
type roundTrip struct {
	sync, rate float64 // seconds, bytes/s; rate 0: bytes cost nothing
	request    float64 // seconds
}

func newRoundTrip(p *Profile) roundTrip {
	return roundTrip{sync: p.Host.LayerSync.SI(), request: p.Host.LayerRequest.optional(),
		rate: p.Host.LayerRate.optional()}
}

// of is the time of a layer of some requests with lists of so many bytes.
func (r *roundTrip) of(requests int, bytes float64) float64 {
	t := float64(requests) * r.request
	if r.rate == 0 {
		return t + r.sync
	}
	return t + (r.sync + bytes/r.rate)
}

// ListBytes are those of the lists of one layer's decodes that attend to so many tokens for each KV
// head: 4 for each block of 32. With offloading as many again go up, for the blocks' slots, and 16
// for each block that is loaded: not a thousandth of the block.
func ListBytes(m *Model, selected float64) float64 { return selected * 4 * float64(m.KVHeads) / 32 }

// LayerSyncSeconds returns the time of one layer's round trip between GPU and
// CPU with lists of so many bytes, of some requests.
func (p *Profile) LayerSyncSeconds(requests int, bytes int64) float64 {
	r := newRoundTrip(p)
	return r.of(requests, float64(bytes))
}
