package hw

// roundTrip models the delay of a layer between selection and loading: the lists of selected blocks
// go down to the CPU, and block tables of the same size come back.
//
//	t = layer_sync + requests layer_request + bytes/layer_rate, bytes = 4 KVHeads selected/32
//
// with selected tokens summed over requests, in blocks of 32.
type roundTrip struct {
	sync, rate float64 // seconds, bytes/s; rate 0: bytes cost nothing
	request    float64 // seconds
}

func newRoundTrip(p *Profile) roundTrip {
	return roundTrip{sync: p.Host.LayerSync.SI(), request: p.Host.LayerRequest.optional(),
		rate: p.Host.LayerRate.optional()}
}

// of returns the seconds of one layer's round trip for the given requests and bytes of lists.
func (r *roundTrip) of(requests int, bytes float64) float64 {
	t := float64(requests) * r.request
	if r.rate == 0 {
		return t + r.sync
	}
	return t + (r.sync + bytes/r.rate)
}

// ListBytes returns the bytes of one layer's lists when decodes select the given tokens per KV
// head: 4 for each block of 32. With offloading, the same number of bytes of slots comes back.
// Loaded blocks add 16 bytes each, which is negligible.
func ListBytes(m *Model, selected float64) float64 { return selected * 4 * float64(m.KVHeads) / 32 }

// LayerSyncSeconds returns the seconds of one layer's round trip between GPU and CPU for the given
// requests and bytes of lists.
func (p *Profile) LayerSyncSeconds(requests int, bytes int64) float64 {
	r := newRoundTrip(p)
	return r.of(requests, float64(bytes))
}
