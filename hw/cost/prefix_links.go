package cost

import (
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

// PrefixOptions configures the transfer of cached prefixes between HBM, DRAM and SSD.
type PrefixOptions struct {
	Drive *hw.Drive // nil: no SSD
	GPUs  float64   // that share the drive, each with its part of every prefix
	Chunk int64     // bytes per read from SSD
}

// prefixLinks moves cached prefixes while a device's steps run. Loads copy whole blocks in sequence
// at the link's rate. If saves run meanwhile and both exceed the link's duplex limit, both are
// slowed alike. Reads from SSD are one chunk ahead of the link. SSD reads and writes do not slow
// each other.
type prefixLinks struct {
	opts          PrefixOptions
	h2d, d2h      float64  // bytes/s
	landed        des.Time // when all loads so far have landed
	read, written des.Time // when SSD has finished all reads, and all writes
	busy          des.Time // of the link with loads, not yet counted in a step
	from, until   des.Time // of the load that the running step's layers wait for
}

func newPrefixLinks(p *hw.Profile, opts PrefixOptions) prefixLinks {
	nominal := p.Link.Nominal.SI()
	return prefixLinks{opts: opts, h2d: min(p.Link.H2D.SI(), nominal),
		d2h: min(p.Link.D2H.SI(), nominal)}
}

// ssd returns the seconds in which the drive reads the given bytes for each GPU.
func (p *prefixLinks) ssd(bytes int64) float64 {
	all := float64(bytes) * p.opts.GPUs
	rate, reads := p.opts.Drive.Reading()
	return max(all/rate, all/float64(max(1, p.opts.Chunk))/reads)
}

// seconds returns the seconds of a load without contention.
func (p *prefixLinks) seconds(l sim.PrefixLoad) float64 {
	t := float64(l.Bytes) / p.h2d
	if l.SSD == 0 {
		return t
	}
	return max(t, p.ssd(l.SSD)+float64(min(l.SSD, p.opts.Chunk))/p.h2d)
}

// FetchPrefix implements sim.PrefixDevice.
func (d *Device) FetchPrefix(at des.Time, l sim.PrefixLoad) des.Time {
	p, q := &d.prefixes, &d.saves
	q.advance(at)
	begin := max(at, p.landed)
	unshared := nanoseconds(float64(l.Bytes) / p.h2d)
	both, slowed := d.beside(unshared, q.work-(begin-at), float64(l.Bytes))
	q.hold(slowed - both)
	t := unshared + slowed - both
	p.busy += t
	p.landed = begin + t
	if l.SSD > 0 {
		p.read = max(at, p.read) + nanoseconds(p.ssd(l.SSD))
		p.landed = max(p.landed, p.read+nanoseconds(float64(min(l.SSD, p.opts.Chunk))/p.h2d))
	}
	return p.landed
}

// SavePrefix implements sim.PrefixDevice.
func (d *Device) SavePrefix(at des.Time, bytes, ssd int64) (dram, onSSD des.Time) {
	p, q := &d.prefixes, &d.saves
	q.advance(at)
	if bytes > 0 {
		q.push(bytes, nanoseconds(float64(bytes)/p.d2h))
	}
	dram = max(at, q.done())
	if ssd > 0 {
		p.written = max(dram, p.written) +
			nanoseconds(float64(ssd)*p.opts.GPUs/p.opts.Drive.Write.SI())
	}
	return dram, p.written
}

// beginPrefix waits, at the begin of a step, for saves and for prefixes that it does not load by
// layer.
func (d *Device) beginPrefix() {
	if d.step.AwaitSaves {
		d.pass(d.saves.until(0), &d.phases.SaveStall)
	}
	p := &d.prefixes
	if p.from, p.until = 0, 0; d.step.Prefix.Bytes == 0 {
		return
	}
	p.from = d.now
	p.until = d.FetchPrefix(d.now, d.step.Prefix)
	if !d.step.Prefix.ByLayer {
		d.pass(max(0, p.until-d.now), &d.phases.LoadStall)
	}
}

// wait delays the loads that are unfinished at a time by t, while the link loads other blocks for
// which a layer's attention waits.
func (p *prefixLinks) wait(at, t des.Time) {
	if p.landed > at {
		p.landed, p.from, p.until = p.landed+t, p.from+t, p.until+t
	}
}

// awaitPrefix waits for a layer's part of the step's prefix load.
func (d *Device) awaitPrefix(layer int) {
	if p := &d.prefixes; p.until > d.now && d.step.Prefix.ByLayer {
		part := (p.until - p.from) * des.Time(layer+1) / des.Time(d.model.Layers)
		d.pass(max(0, p.from+part-d.now), &d.phases.LoadStall)
	}
}

// prefixBusy returns, and removes, at most within of the link's load time that no step has counted.
func (d *Device) prefixBusy(within des.Time) des.Time {
	t := min(within, d.prefixes.busy)
	d.prefixes.busy -= t
	return t
}

// PrefixPrices compares the cost of loading a prefix with the cost of computing it.
type PrefixPrices struct {
	links   prefixLinks
	costs   Costs
	classes []*coster // of each layer; nil for a plain model
	layers  int
	chunk   int // most tokens that are computed at once
}

// NewPrefixPrices returns the prices of a model on a card, with prefill chunks of chunk tokens.
func NewPrefixPrices(p *hw.Profile, m *llm.Model, opts PrefixOptions, chunk int) *PrefixPrices {
	device := &DeviceOptions{}
	first := newCoster(p, m, device)
	return &PrefixPrices{newPrefixLinks(p, opts), Of(p, m), newClasses(p, m, &first, device),
		m.Layers, chunk}
}

// Load returns the seconds of a load without contention.
func (p *PrefixPrices) Load(l sim.PrefixLoad) float64 { return p.links.seconds(l) }

// Compute returns the GPU's seconds to compute tokens [from, to) of a prompt, in chunks.
func (p *PrefixPrices) Compute(from, to int) (seconds float64) {
	for ; from < to; from += p.chunk {
		n := min(p.chunk, to-from)
		w := sim.Work{Tokens: n, Prefill: []sim.Span{{Query: n, Prefix: from}}}
		for _, c := range p.classes {
			l := c.layer(&w)
			seconds += (l.linears + l.prefill + l.index).Seconds()
		}
		if p.classes != nil {
			continue
		}
		seconds += float64(p.layers) * (Seconds(p.costs.GEMM, w) + Seconds(p.costs.Elementwise, w) +
			Seconds(p.costs.PrefillAttention, w))
	}
	return seconds
}

// Crossover returns the smallest number of KV chunks, of tokens tokens and bytes bytes each, from
// which a load takes less time than computing them, for that number and all larger ones up to most;
// 0: none. Shorter prefixes may be cheaper to load, too, because the GPU reads all weights for few
// tokens.
func (p *PrefixPrices) Crossover(tokens int, bytes int64, ssd bool, most int) int {
	n, whole, seconds := 1, 0, 0.0 // of the chunks that are computed whole
	for i := 1; i <= most; i++ {
		for ; whole+p.chunk <= i*tokens; whole += p.chunk {
			seconds += p.Compute(whole, whole+p.chunk)
		}
		l := sim.PrefixLoad{Bytes: int64(i) * bytes}
		if ssd {
			l.SSD = l.Bytes
		}
		if p.Load(l) >= seconds+p.Compute(whole, i*tokens) {
			n = i + 1
		}
	}
	if n > most {
		return 0
	}
	return n
}
