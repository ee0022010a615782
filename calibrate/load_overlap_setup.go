package calibrate

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/live"
	"github.com/sparseserve/sparseserve/hw"
)

// Size of each load that overlaps with prefill.
const overlappedBlocks, overlappedBytes = 32768, 16 * kib

// overlappedTime is the approximate duration of one measurement of layers and round trips. The
// clock hardly falls within it. At about 134 GB/s or less one load outlasts it.
const overlappedTime = 4 * time.Millisecond

// mostLoads sequential loads outlast overlappedTime on links of up to 2 TB/s.
const mostLoads = 16

// overlapRound is the time of a layer or of a round trip, in seconds.
type overlapRound struct{ alone, loading float64 }

// prepareOverlapped prepares a point with or without loading; both use the same rounds.
func (g *gpuBench) prepareOverlapped(p Point) (Timed, error) {
	loading, key := p.Probe == probeChunkLoading || p.Probe == probeTripLoading, p.Shape+" "+p.Sizes()
	rounds, known := g.overlaps[key]
	if !known {
		if err := g.do(func(g *gpuRun) { rounds = g.runOverlapped(p) }); err != nil {
			return nil, err
		}
		g.overlaps[key] = rounds
	}
	return g.rounds(func(_ *gpuRun, i int) float64 {
		if loading {
			return rounds[i].loading
		}
		return rounds[i].alone
	}), nil
}

// overlapping launches the timed calls on one stream and a load on another.
type overlapping struct {
	*gpuRun
	compute, loads, saves cuda.Stream
	from, to, event, old  cuda.Event // old: a load that has ended
	copied                cuda.Event // what is to be saved is in the save buffer
	loaded                cuda.Event // all loads have ended
	load                  cuda.Operation
	loadCount             int             // loads, one after another, while something is timed
	host                  cuda.HostMemory // lists, and the gate
	saved                 cuda.HostMemory // what a layer saves
	gate                  *uint64
	turn                  int64
	open                  cuda.HostGateArgs
	down                  cuda.Operation // of a layer's lists
}

func (g *gpuRun) newOverlapping() *overlapping {
	o := &overlapping{gpuRun: g, loadCount: 1}
	for _, s := range []*cuda.Stream{&o.compute, &o.loads, &o.saves} {
		g.try(func() (err error) { *s, err = g.s.StreamCreate(true); return err })
	}
	for _, e := range []*cuda.Event{&o.from, &o.to, &o.loaded, &o.event, &o.old, &o.copied} {
		timed := e == &o.from || e == &o.to || e == &o.loaded
		g.try(func() (err error) { *e, err = g.s.EventCreate(timed); return err })
	}
	load := g.overlappedLoad()
	o.load = g.correct(load)[0]
	lists := g.poisoned(layerLists)
	g.try(func() (err error) {
		o.host, err = g.s.HostAlloc(layerLists+8, cuda.DriverPages)
		return err
	})
	if g.err != nil {
		return o
	}
	host := o.host.Ptr()
	o.down = &cuda.CarryArgs{Dst: host, Src: lists, Bytes: layerLists}
	o.gate = &cuda.Slice[uint64](o.host)[layerLists/8]
	atomic.StoreUint64(o.gate, 0)
	o.open = cuda.HostGateArgs{Dst: lists, Src: host, Bytes: layerLists, Gate: host + layerLists}
	g.try(func() error { return g.s.EventRecord(o.old, o.loads) })
	return o
}

// close frees all resources, also after an error.
func (o *overlapping) close() {
	errs := []error{o.s.DeviceSync()} // after an error copies may be under way
	for _, e := range []cuda.Event{o.from, o.to, o.loaded, o.event, o.old, o.copied} {
		if e != 0 {
			errs = append(errs, o.s.EventDestroy(e))
		}
	}
	for _, s := range []cuda.Stream{o.compute, o.loads, o.saves} {
		if s != 0 {
			errs = append(errs, o.s.StreamDestroy(s))
		}
	}
	for _, m := range []cuda.HostMemory{o.host, o.saved} {
		if m.Ptr() != 0 {
			errs = append(errs, o.s.HostFree(m))
		}
	}
	o.try(func() error { return errors.Join(errs...) })
}

func (o *overlapping) calls(ops ...cuda.Operation) {
	for _, op := range ops {
		o.try(func() error { return o.s.Launch(op, o.compute) })
	}
}

func (o *overlapping) record(e cuda.Event) {
	o.try(func() error { return o.s.EventRecord(e, o.compute) })
}

// times returns the mean time of n calls of what, while loads run or alone, in seconds.
func (o *overlapping) times(n int, loading bool, what func(loading bool)) float64 {
	if loading {
		for range o.loadCount {
			o.try(func() error { return o.s.Launch(o.load, o.loads) })
		}
		o.try(func() error { return o.s.EventRecord(o.loaded, o.loads) })
		o.calls(&cuda.EmptyArgs{}) // time for the load to begin
	}
	o.record(o.from)
	for range n {
		what(loading)
	}
	o.record(o.to)
	o.sync()
	return math.Max(o.until(o.to)/float64(n), 1e-9)
}

// until returns the time from the first call to an event, in seconds.
func (o *overlapping) until(e cuda.Event) (seconds float64) {
	o.try(func() error {
		ms, err := o.s.EventMilliseconds(o.from, e)
		seconds = ms * 1e-3
		return err
	})
	return seconds
}

// whileLoading calls rest, then times while loads run throughout. Calls that outlast the loads
// would seem to lose less time, so they are timed again with twice the number of loads.
func (o *overlapping) whileLoading(n int, what func(loading bool), rest func()) float64 {
	for {
		rest()
		seconds := o.times(n, true, what)
		loaded, timed := o.until(o.loaded), o.until(o.to)
		if loaded >= timed || o.err != nil {
			return seconds
		}
		if o.loadCount == mostLoads {
			o.fail("%d loads of %s on %d SMs end after %.3g ms, before what is timed while they run, "+
				"after %.3g ms: this card needs larger ones (overlappedBlocks)", o.loadCount,
				size(overlappedBlocks*overlappedBytes), live.AheadCTAs, loaded*1e3, timed*1e3)
			return 0
		}
		o.loadCount *= 2
	}
}

func (g *gpuRun) runOverlapped(p Point) []overlapRound {
	o := g.newOverlapping()
	defer o.close()
	what, rest := o.trip, func() {}
	if p.Shape != "" {
		decodes := g.pace(slices.Repeat(g.linears(g.model(p.Shape), decodesTokens).calls, decodesLayers))
		what, rest = o.layer(p), func() { g.runFor(decodes, decodesBefore) }
	}
	for _, loading := range []bool{true, false} { // a kernel's first launch may wait for a load
		o.times(2, loading, what)
	}
	if p.Shape == "" && g.err == nil && slices.ContainsFunc(o.host.Bytes()[:layerLists],
		func(b byte) bool { return b != 0xff }) {
		g.fail("a round trip did not bring its lists to the host") // as they are poisoned
	}
	each := o.times(2, false, what)
	n := int(math.Min(64, math.Max(1, math.Round(overlappedTime.Seconds()/each))))
	rounds := make([]overlapRound, clockRounds)
	for i := range rounds {
		rest()
		rounds[i].alone = o.times(n, false, what)
		rounds[i].loading = o.whileLoading(n, what, rest)
	}
	return rounds
}

// trip is a round trip of the serving loop: the host waits for the selection, and the GPU waits at
// a gate for the resulting lists.
func (o *overlapping) trip(bool) {
	o.turn++
	gate := o.open
	gate.Turn = o.turn
	o.calls(o.down)
	o.record(o.event)
	o.calls(&gate)
	o.try(func() error { return o.s.EventSync(o.event) })
	if o.gate != nil {
		atomic.StoreUint64(o.gate, cuda.GateWord(o.turn, 0))
	}
}

// overlappedDecodes is the number of decodes in such a layer. Each attends to a selection.
const overlappedDecodes = 4

// overlappedMisses is the number of blocks that each decode loads in such a layer.
const overlappedMisses = 2

// layer returns the serving loop's launches in a layer that decodes and prefills, including saves,
// without its round trip. If loading, it also uploads the addresses of the next layer's prefix,
// copies the prompt's open blocks, and waits for its own prefix.
func (o *overlapping) layer(p Point) func(loading bool) {
	m, n, prefix := o.model(p.Shape), p.At("chunk_tokens"), p.At("prefix_tokens")
	linears := o.correct(o.linears(m, n))
	attention := o.correct(o.prefill(m, n, prefix, blockTokens))
	c := o.pointwise(m, n)
	o.launch(&c.rope.args, &c.norm, &c.silu, &c.again)
	o.checkPointwise(c)
	rope, selected := o.rope(m, overlappedDecodes), min(liveBudget, prefix)/blockTokens
	o.checkRope(rope, 0)
	decodes := o.decode(m, decodeSpec{contexts: equalTo(overlappedDecodes, prefix),
		chosen: equalTo(overlappedDecodes*int64(m.KVHeads), selected)})
	o.launch(&decodes.args)
	o.checkDecode(decodes)
	choice := o.selection(m, overlappedDecodes, prefix/blockTokens, selected)
	o.launch(choice)
	o.checkSelect(choice, 0)
	save := o.correct(o.toSaveBuffer(c.rope.args.Pool, c.rope.slots, int64(4*blockTokens*m.HeadDim)))
	full, hit := o.digestOf(m, n), o.digestOf(m, prefix)
	misses := o.correct(o.missedBlocks(m))
	open := o.correct(o.openBlocks(m, c.rope))
	out, addresses := o.saving(n*m.LayerKVBytesPerToken()), o.correct(o.addressesOf(m, prefix))
	before := slices.Concat([]cuda.Operation{linears[0], &rope.args, choice}, misses)
	write := []cuda.Operation{&rope.args, &c.rope.args} // K and V
	toBuffer := append([]cuda.Operation{full}, save...)
	after := slices.Concat([]cuda.Operation{hit}, attention,
		[]cuda.Operation{&decodes.args, linears[1], &c.norm, linears[2], &c.silu, linears[3], &c.again})
	return func(loading bool) {
		o.calls(before...)
		if loading {
			o.try(func() error { return o.s.StreamWait(o.compute, o.old) })
			o.record(o.event) // the next layer's load may begin
			o.calls(addresses...)
		}
		o.calls(write...)
		if loading {
			o.calls(open...)
		}
		o.calls(toBuffer...)
		o.record(o.copied)
		o.try(func() error { return o.s.StreamWait(o.saves, o.copied) })
		o.try(func() error { return o.s.Launch(out, o.saves) })
		o.calls(after...)
	}
}

// addressesOf uploads the input of the next layer's prefix load: the source and destination address
// of each block.
func (g *gpuRun) addressesOf(m *hw.Model, prefix int64) checked {
	all := make([]cuda.Ptr, prefix/blockTokens*int64(m.KVHeads)*2+1)
	for i := range all {
		all[i] = cuda.Ptr(g.r.Uint64())
	}
	at := g.pin(all)
	if at%16 != 0 {
		at, all = at+8, all[1:]
	} else {
		all = all[:len(all)-1]
	}
	bytes := int64(8 * len(all))
	op := &cuda.CarryArgs{Dst: g.poisoned(bytes), Src: at, Bytes: bytes}
	return checked{[]cuda.Operation{op}, func() {
		g.transfer(op)
		var want []byte
		for _, address := range all {
			want = binary.LittleEndian.AppendUint64(want, uint64(address))
		}
		g.sameBytes(op.Dst, want, "addresses")
	}}
}

// saving copies bytes of a save buffer to the host.
func (o *overlapping) saving(bytes int64) cuda.Operation {
	op := &cuda.MemcpyArgs{Src: o.poisoned(bytes), Bytes: bytes}
	if o.try(func() (err error) {
		o.saved, err = o.s.HostAlloc(bytes, cuda.DriverPages)
		return err
	}); o.err != nil {
		return op
	}
	op.Dst = o.saved.Ptr()
	clear(o.saved.Bytes())
	o.transfer(op)
	if slices.ContainsFunc(o.saved.Bytes()[:bytes], func(b byte) bool { return b != 0xff }) {
		o.fail("a save did not bring its bytes to the host")
	}
	return op
}

// missedBlocks loads the blocks that decodes miss.
func (g *gpuRun) missedBlocks(m *hw.Model) checked {
	count, block := int64(overlappedDecodes*overlappedMisses), int64(4*blockTokens*m.HeadDim)
	return g.load(probeLoadFlash, g.poisoned(count*block), count*block, count, block, basePool*mib)
}

// openBlocks copies a prompt's last block of each KV head, as the live loop copies open blocks.
func (g *gpuRun) openBlocks(m *hw.Model, rope *ropeCall) checked {
	var last []int32
	for head := range slices.Chunk(rope.slots, int(rope.args.HeadStride)) {
		last = append(last, head[len(head)-1])
	}
	return g.toSaveBuffer(rope.args.Pool, last, int64(4*blockTokens*m.HeadDim))
}

// digestOf digests the full blocks of the given number of tokens.
func (g *gpuRun) digestOf(m *hw.Model, tokens int64) *cuda.DigestArgs {
	d, count := int64(m.HeadDim), tokens/blockTokens*int64(m.KVHeads)
	slots := g.permuted(count)
	a := &cuda.DigestArgs{Count: count, HeadDim: int32(d), BlockTokens: blockTokens,
		Pool: g.random(count * 2 * blockTokens * d), Slot: upload(g, slots),
		Dst: upload(g, counted[int64](count)), Meta: g.poisoned(count * 2 * d * 2)}
	g.checkDigest(a, slots)
	return a
}

// overlappedLoad is FlashH2D in the configuration of a prefix load.
func (g *gpuRun) overlappedLoad() checked {
	const slotBytes = overlappedBlocks * overlappedBytes
	c := g.load(probeLoadFlash, g.poisoned(slotBytes), slotBytes, overlappedBlocks, overlappedBytes,
		basePool*mib)
	for _, op := range c.calls {
		op.(*cuda.FlashH2DArgs).CTAs = live.AheadCTAs
	}
	return c
}

// setupComputed prepares loads during the layers of a chunk.
func (g *gpuRun) setupComputed(p Point) *setup {
	t := g.chunkLayers(g.model(p.Shape), p.At("chunk_tokens"), p.At("prefix_tokens"), 2)
	c := g.overlappedLoad()
	t.overlap, t.verify = c.calls, both(t.verify, c.verify)
	t.each = func(_, overlap float64) float64 { return overlap }
	return t
}
