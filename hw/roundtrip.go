package hw

import (
	"sparseserve/sim"
	"sparseserve/sim/des"
)

// roundTrip is a layer's way from selection to loading: the lists of selected
// blocks come down to the CPU, and block tables of the same size go up.
//
//	t = layer_sync + requests layer_request + bytes/layer_rate, bytes = 4 KVHeads selected/32
//
// with the selected tokens summed over requests, in blocks of 32. Where some
// request's lists are looked up whole, whole_list for each of its KVHeads lists
// comes on top. Where it was measured batch by batch, that is what it takes
// (turns).
type roundTrip struct {
	sync, rate float64 // seconds, bytes/s; rate 0: bytes cost nothing
	request    float64 // seconds
	each       float64 // bytes for each selected token
	turns      turns
}

func newRoundTrip(p *Profile, m *Model) roundTrip {
	return roundTrip{
		sync: p.Host.LayerSync.SI(), request: p.Host.LayerRequest.optional(), rate: p.Host.LayerRate.optional(), each: ListBytes(m, 1),
		turns: newTurns(p.Host.Turns, m.KVHeads),
	}
}

// newPSARoundTrip is that of progressive attention, whose tokens are those of
// lists as long as the longest.
func newPSARoundTrip(p *Profile, m *Model) roundTrip {
	return roundTrip{
		sync: p.Host.PSALayer.optional(), request: p.Host.PSARequest.optional(), rate: p.Host.PSARate.optional(), each: ListBytes(m, 1),
		turns: newTurns(p.Host.PSATurns, m.KVHeads),
	}
}

// known says whether there are figures of it.
func (r *roundTrip) known() bool { return r.sync > 0 || r.turns.known() }

// of is the time of a layer of some requests.
func (r *roundTrip) of(requests int, selected float64) float64 {
	if !r.turns.known() {
		return float64(requests)*r.request + r.seconds(selected)
	}
	at := r.turns.of(float64(requests))
	t := at.seconds + max(0, float64(requests)-at.requests)*r.request
	if r.rate > 0 {
		t += (selected*r.each - at.bytes) / r.rate
	}
	return max(t, 0)
}

func (r *roundTrip) seconds(selected float64) float64 { return r.ofBytes(selected * r.each) }

func (r *roundTrip) ofBytes(bytes float64) float64 {
	if r.rate == 0 {
		return r.sync
	}
	return r.sync + bytes/r.rate
}

// ListBytes are those of the lists of one layer's decodes that attend to so many
// tokens for each KV head: 4 for each block of 32. With offloading as many again
// go up, for the blocks' slots, and 16 for each block that is loaded: not a
// thousandth of the block.
func ListBytes(m *Model, selected float64) float64 { return selected * 4 * float64(m.KVHeads) / 32 }

// newListCopy is a layer's lists on their way up alone, between two kernels.
func newListCopy(p *Profile, m *Model) roundTrip {
	return roundTrip{sync: p.Host.ListCopy.optional(), rate: p.Host.ListRate.optional(), each: newRoundTrip(p, m).each}
}

// LayerSyncSeconds returns the time of one layer's round trip between GPU and
// CPU with lists of so many bytes, of some requests, from the figures of all
// models.
func (p *Profile) LayerSyncSeconds(requests int, bytes int64) float64 {
	r := roundTrip{sync: p.Host.LayerSync.SI(), request: p.Host.LayerRequest.optional(), rate: p.Host.LayerRate.optional(), each: 1}
	return r.of(requests, float64(bytes))
}

// PSALayerSeconds is the same where attention is progressive, with lists as long
// as the longest.
func (p *Profile) PSALayerSeconds(requests int, bytes int64) float64 {
	r := roundTrip{sync: p.Host.PSALayer.optional(), request: p.Host.PSARequest.optional(), rate: p.Host.PSARate.optional(), each: 1}
	return r.of(requests, float64(bytes))
}

// TurnSeconds returns the time of one layer's round trip of a model with so many
// KV heads, by batch where it was measured so.
func (p *Profile) TurnSeconds(psa bool, kvHeads, requests int, bytes float64) float64 {
	m := Model{KVHeads: kvHeads}
	r := newRoundTrip(p, &m)
	if psa {
		r = newPSARoundTrip(p, &m)
	}
	r.each = 1
	return r.of(requests, bytes)
}

// ListCopySeconds returns the time in which lists of so many bytes come up alone,
// between two kernels.
func (p *Profile) ListCopySeconds(bytes float64) float64 {
	r := roundTrip{sync: p.Host.ListCopy.optional(), rate: p.Host.ListRate.optional()}
	return r.ofBytes(bytes)
}

// WholeListsSeconds returns what a layer takes longer where a request's lists are
// looked up whole.
func (p *Profile) WholeListsSeconds(m *Model) float64 {
	return p.Host.WholeList.optional() * float64(m.KVHeads)
}

// hostLoads is what the host does for the blocks that a layer loads, while the
// GPU waits: it finds them a slot and names both places.
//
//	t = n load + loads n/(n + loads_half)
//
// The first blocks cost most: a layer with loads does what one without has not to
// do, and one with many shares the work over cores.
type hostLoads struct{ each, many, half float64 } // seconds, seconds, blocks

func newHostLoads(p *Profile) hostLoads {
	return hostLoads{each: p.Host.Load.optional(), many: p.Host.Loads.optional(), half: p.Host.LoadsHalf.optional()}
}

func (h *hostLoads) seconds(blocks int64) float64 {
	if blocks == 0 {
		return 0
	}
	n := float64(blocks)
	return n*h.each + h.many*n/(n+h.half)
}

// HostLoadsSeconds returns what the host takes for the blocks that one layer
// loads.
func (p *Profile) HostLoadsSeconds(blocks int64) float64 {
	h := newHostLoads(p)
	return h.seconds(blocks)
}

// newLookup is the GPU's lookup of a layer's lists, which are on the GPU.
func newLookup(p *Profile, m *Model) roundTrip {
	return roundTrip{sync: p.Host.Lookup.optional(), rate: p.Host.LookupRate.optional(), each: newRoundTrip(p, m).each}
}

// LookupSeconds returns the GPU's time to look up a layer's lists of so many
// blocks, so many of them missing.
func (p *Profile) LookupSeconds(blocks, missing int64) float64 {
	r := roundTrip{sync: p.Host.Lookup.optional(), rate: p.Host.LookupRate.optional()}
	return r.ofBytes(4*float64(blocks)) + newLookupMisses(p).seconds(missing)
}

// lookupMisses is what the GPU's lookup takes longer where blocks are missing.
type lookupMisses struct{ any, each float64 }

func newLookupMisses(p *Profile) lookupMisses {
	return lookupMisses{any: p.Host.LookupMiss.optional(), each: p.Host.LookupBlock.optional()}
}

func (l lookupMisses) seconds(missing int64) float64 {
	if missing == 0 {
		return 0
	}
	return l.any + float64(missing)*l.each
}

// roundTrip is a layer's way to the CPU and back.
func (d *Device) roundTrip(w *sim.Work) des.Time {
	t := nanoseconds(d.sync.of(w.Decodes, float64(w.DecodeTokens)))
	if longest := d.longest(w); longest > 0 && d.inTurn.known() {
		t = nanoseconds(d.inTurn.of(w.Decodes, float64(w.Decodes*longest*psaBlockTokens)))
	}
	if d.step.WholeLists > 0 {
		t += d.whole
	}
	return t
}

// longest is how many blocks the longest list of progressive attention has, in
// whole microbatches. Rounds without tokens are of loads alone.
func (d *Device) longest(w *sim.Work) (blocks int) {
	for i := range w.Rounds {
		if w.Rounds[i].Tokens > 0 {
			blocks += d.opts.Microbatch
		}
	}
	return blocks
}

// lookUp passes what the GPU takes for a layer's lists: they come up, and it looks
// them up.
func (d *Device) lookUp(w *sim.Work) {
	tokens := float64(w.DecodeTokens)
	d.cpu.lists(w, d.longest(w))
	d.compute(nanoseconds(d.lists.seconds(tokens)+d.lookup.seconds(tokens)), &d.phases.Host)
}
