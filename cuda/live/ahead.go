package live

import (
	"errors"
	"sync/atomic"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/live/mem"
	"github.com/sparseserve/sparseserve/sim"
)

// ahead launches what follows a layer's round trip before the host has looked anything up. A launch
// costs the driver some microseconds, more on a core that others share, and a layer of decodes has
// ten: behind the lookup, each would be time in which the GPU has nothing to do. In front of it
// they are behind a gate on the stream (cuda/host_gate.cu), which the host opens with one store
// once the layer's lists and loads are in pinned memory. No argument of these launches depends on
// what the lookup finds: lists are where the server said (sim.Work.Ahead), loads are counted on the
// GPU, and attention is divided for lists as long as the budget.
//
// Slots that the server assigns in the lookup, of blocks that fill and of prefills, are left to
// fill in arrays that go up with the lists.
//
// It is not done where what follows depends on more: with progressive attention, sparse prefill or
// a memcpy for each load, and where a prefill's open block has to come from its stash first; nor
// where streams share connections to the GPU (launchesAhead).
type ahead struct {
	layer  int   // whose launches are behind a closed gate; -1: none
	turn   int64 // of the last gate
	lists  *sim.Lists
	closes bool       // full blocks are digested and copied behind the gate, too
	chosen cuda.Event // the layer's selection is on the host

	gate cuda.HostMemory // uint64, cuda.GateWord
	// Addresses of a layer's loads and of their slots, as long as lists can be: on the host and the
	// GPU.
	loads     cuda.HostMemory
	src, dst  []int64 // the same
	addresses mem.Buffer
	counted   mem.Buffer // int64 on the GPU: loads of the layer
	// Numbers of decodes and of blocks in a list whose launches have been made without a gate: the
	// first launch of a kernel may load it, which waits for the GPU, and so for the gate.
	loaded map[launched]bool
}

// open allocates the gate and launches one that is open.
func (a *ahead) open(m cuda.Machine, on cuda.Stream) (err error) {
	a.layer, a.loaded = -1, map[launched]bool{}
	if a.chosen, err = m.EventCreate(false); err != nil {
		return err
	}
	if a.gate, err = m.HostAlloc(8, cuda.DriverPages); err != nil {
		return err
	}
	a.set(0, 0)
	if err = m.Launch(&cuda.HostGateArgs{Gate: a.gate.Ptr()}, on); err != nil {
		return err
	}
	return m.StreamSync(on)
}

// set opens the gates of a turn and of those before it.
func (a *ahead) set(turn, loads int64) {
	atomic.StoreUint64(&cuda.Slice[uint64](a.gate)[0], cuda.GateWord(turn, loads))
}

// endGate lets all go on that is launched when the run has ended in a layer's lookup. What it
// computes no longer matters, but it must not leave the cache: lists are empty, and every slot is
// the first.
func (d *Device) endGate() {
	a := &d.ahead
	if a.turn == 0 || a.layer < 0 {
		return
	}
	for _, words := range [...][]int32{a.lists.Count, a.lists.Block, a.lists.Slot, a.lists.Open} {
		clear(words)
	}
	for _, own := range d.plan.tables {
		clear(own.slots)
	}
	d.nameSlots()
	a.layer = -1
	a.set(a.turn, 0)
}

// canLaunchAhead says whether a layer's launches are known before its lookup.
func (d *Device) canLaunchAhead(layer int, w *sim.Work) bool {
	a, c := &d.ahead, &d.decodes
	if w.Ahead == nil || a.loaded == nil || d.queue.Err() != nil {
		return false
	}
	if _, lent := d.stage.Lent(w.Ahead.Count); !lent {
		return false
	}
	for i := range c.n {
		if d.stashedOpen(i) {
			return false
		}
	}
	if n := &d.active; len(n.rows) != w.Decodes+len(w.Prefill) || n.tokens != w.Tokens ||
		len(w.Prefill) > mostAhead {
		return false // of rows that do not agree Compute tells
	}
	heads := d.geo.KVHeads
	bytes, after := int64(c.n)*saveBytes(heads, 1), false
	for i := c.n; i < len(d.rows); i++ {
		if row := &d.rows[i]; row.In(layer) || row.In(layer+1) {
			after = after || row.From > 0 && row.In(layer)
			// A prefix is digested, what follows saved too, and an open block may go to its stash; the
			// next layer's prefix loads meanwhile.
			bytes += saveBytes(heads, 2*d.geo.Blocks(row.To)+1)
		}
	}
	if !d.stage.Fits(bytes) {
		return false
	}
	shape := launched{c.n, int(d.listBlocks()), len(w.Prefill), d.cfg.rows(w.Tokens), after}
	known := a.loaded[shape]
	a.loaded[shape] = true
	return known
}

// mostAhead are the most prefills of a layer that is launched ahead, and half the blocks that are
// closed so: a stream holds about a thousand launches, and the next one would wait for the gate.
const mostAhead = 32

// saveBytes is no less than what the slots, digests and saves of so many blocks need in a layer's
// part.
func saveBytes(heads, blocks int) int64 { return int64(heads*blocks)*(4+4+8+16) + 10*256 }

// launched is what sets layers apart whose launches may be of different kernels.
type launched struct {
	decodes, listBlocks, prefills, rows int
	after                               bool // prefills read what is before them from blocks
}

// listBlocks are the most blocks that a list of the step's decodes can have.
func (d *Device) listBlocks() int32 { return int32(d.cfg.listBlocks(d.decodes.most)) }

// launchAhead launches the rest of the layer behind a gate.
func (d *Device) launchAhead(layer int, w *sim.Work) {
	a, l := &d.ahead, w.Ahead
	d.planAhead(layer, w)
	if d.queue.Err() != nil {
		return
	}
	a.closes = d.closesAhead()
	a.layer, a.lists = layer, l
	a.turn++
	from, to, bytes := d.stage.Part()
	most, pitch := int64(len(a.src)), int64(8*len(a.src))
	d.launch(&cuda.HostGateArgs{Dst: to, Src: from, Bytes: bytes, Gate: a.gate.Ptr(),
		Turn: a.turn, Counted: a.counted.At, RowDst: a.addresses.At, RowSrc: a.loads.Ptr(), Pitch: pitch,
		Rows: 2})
	d.stage.Uploads++
	d.stage.UploadBytes += bytes
	d.counters.Gated++
	d.clock.mark(phaseHost)
	d.launch(d.load(cuda.BlocksArgs{Src: a.addresses.At, Dst: a.addresses.At + cuda.Ptr(pitch),
		Count: most, BlockBytes: d.geo.BlockBytes, Counted: a.counted.At}))
	d.clock.mark(phaseLoadStall)
	d.attention(layer, w, d.closeAhead)
	d.finishLayer(layer)
}

// planAhead is planLayer without what the lookup finds: lists are where they will be, and slots are
// left to fill.
func (d *Device) planAhead(layer int, w *sim.Work) {
	p := &d.plan
	p.clear()
	d.nameHits(layer)
	write, decode := d.decodeArgs(layer)
	decode.MaxBlocks = d.listBlocks()
	d.readLists(w.Ahead, write, decode)
	decode.Workspace = d.workspaceFor(decode, &d.workspace, "decode workspace")
	p.writes, p.decode = append(p.writes, write), decode
	d.stage.Send() // what is not in the layer's part, or nothing
	d.open = w.Ahead.Open
	d.planFilled(write.Pool)
	for i := d.decodes.n; i < len(d.rows); i++ {
		if d.rows[i].In(layer) {
			d.planPrefill(layer, i, nil)
		}
	}
	d.planClosed(layer)
	if d.stage.Spilled() {
		d.queue.Fail(errors.New("a layer's part has no room for what is launched ahead of its lookup"))
	}
}

// fillPlan names the slots that the lookup gave.
func (d *Device) fillPlan(w *sim.Work) {
	next := 0 // of w, which has those of layer-segmented prefills too, in the same order
	for _, own := range d.plan.tables {
		for next < len(w.Tables)-1 && w.Tables[next].Row != own.row {
			next++
		}
		d.fillTable(own, &w.Tables[next])
	}
	d.nameSlots()
}

// nameSlots has digests and saves read what tables and lists say.
func (d *Device) nameSlots() {
	p, heads := &d.plan, d.geo.KVHeads
	for _, all := range [...][]closed{p.closed, p.begun} {
		for i := range all {
			all[i].fillDigest(heads)
		}
	}
	for i := range p.saves {
		if s := &p.saves[i]; s.copy != nil {
			d.addressSource(s)
		}
	}
}

// closesAhead says whether all that closes the layer's blocks is known.
func (d *Device) closesAhead() bool {
	p := &d.plan
	if len(p.closed) > 2*mostAhead || len(p.saves) > 2*mostAhead {
		return false
	}
	for i := range p.saves {
		if p.saves[i].copy == nil { // its place in the ring is not known
			return false
		}
	}
	return true
}

// closeAhead digests full blocks and copies them to the ring, where all that it needs is known.
func (d *Device) closeAhead(int) {
	p := &d.plan
	if !d.ahead.closes {
		return
	}
	d.launch(p.stashes...)
	for i := range p.closed {
		d.launch(p.closed[i].digest)
		d.clock.mark(phaseScoring)
	}
	for i := range p.saves {
		d.copyOut(&p.saves[i])
	}
}

// openGate has the GPU read the layer's lists and load what they miss, and sends the blocks that
// became full to DRAM.
func (d *Device) openGate(layer int, w *sim.Work) {
	a, p := &d.ahead, &d.plan
	if w.Lists != a.lists {
		d.queue.Fail(errors.New("the lists of a layer moved after its selection"))
	}
	if d.queue.Err() != nil {
		return // closing opens it
	}
	if d.fillPlan(w); d.queue.Err() != nil {
		return
	}
	a.layer = -1
	a.set(a.turn, int64(d.loading.count))
	d.counters.Loaded += int64(d.loading.count)
	d.loading.count = 0
	d.countSelected(w.Lists)
	if a.closes {
		for i := range p.saves {
			d.submit(layer, &p.saves[i])
		}
	} else {
		d.stage.Send()
		d.closeBlocks(layer)
	}
	d.nameHits(layer + 1)
}
