package live

import (
	"errors"
	"sync/atomic"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/live/mem"
	"github.com/sparseserve/sparseserve/sim"
)

// ahead launches the rest of a layer before the host's lookup. A launch costs the driver some
// microseconds, more on a shared core, and a layer of decodes has ten. After the lookup, the GPU
// would idle during each. Instead they are launched behind a gate on the stream
// (cuda/host_gate.cu), which the host opens with one store when the layer's lists and loads are in
// pinned memory. No launch argument depends on the lookup's result: the server sets the place of
// the lists (sim.Work.Ahead), the GPU reads the number of loads, and attention is divided for lists
// as long as the budget.
//
// The server assigns some slots in the lookup, for full blocks and for prefills. They are filled
// later, in arrays that are uploaded with the lists.
//
// Layers are not launched ahead if the launches depend on the lookup: with progressive attention,
// sparse prefill, a memcpy per load, or a prefill's open block that must first be copied from its
// stash. The same holds if streams share connections to the GPU (launchesAhead).
type ahead struct {
	layer  int   // whose launches are behind a closed gate; -1: none
	turn   int64 // of the last gate
	lists  *sim.Lists
	closes bool       // full blocks are digested and copied behind the gate, too
	chosen cuda.Event // the layer's selection is on the host

	gate cuda.HostMemory // uint64, cuda.GateWord
	// Addresses of a layer's loads and of their slots, for lists of the maximum length, on the host
	// and on the GPU.
	loads     cuda.HostMemory
	src, dst  []int64 // the same
	addresses mem.Buffer
	counted   mem.Buffer // int64 on the GPU: loads of the layer
	// Launch shapes that have run without a gate. The first launch of a kernel may load it, which
	// waits for the GPU and would therefore wait for the gate.
	loaded map[launched]bool
}

// open allocates the gate and launches an open one.
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

// set opens the gates of a turn and of all earlier turns.
func (a *ahead) set(turn, loads int64) {
	atomic.StoreUint64(&cuda.Slice[uint64](a.gate)[0], cuda.GateWord(turn, loads))
}

// endGate releases the launches behind the gate when the run has ended during a layer's lookup.
// Their results do not matter, but they must not access memory outside the cache: lists are empty,
// and every slot is slot 0.
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

// canLaunchAhead reports whether a layer's launches are known before its lookup.
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
			// A prefill digests its prefix, saves its new blocks, and may copy an open block to its
			// stash. Meanwhile the next layer's prefix loads.
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

// mostAhead is the maximum number of prefills in a layer that is launched ahead, and half the
// maximum of runs of closed blocks. A stream holds about a thousand launches; further launches
// would wait for the gate.
const mostAhead = 32

// saveBytes is an upper bound of the bytes that slots, digests and saves of the given blocks take
// in a layer's part.
func saveBytes(heads, blocks int) int64 { return int64(heads*blocks)*(4+4+8+16) + 10*256 }

// launched identifies the kernels that a layer launches.
type launched struct {
	decodes, listBlocks, prefills, rows int
	after                               bool // prefills read what is before them from blocks
}

// listBlocks returns the maximum number of blocks in a list of the step's decodes.
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

// planAhead is planLayer without the lookup's result: it uses the future place of the lists, and
// leaves slots to fill.
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

// fillPlan fills in the slots that the lookup assigned.
func (d *Device) fillPlan(w *sim.Work) {
	next := 0 // of w, which also has layer-segmented prefills, in the same order
	for _, own := range d.plan.tables {
		for next < len(w.Tables)-1 && w.Tables[next].Row != own.row {
			next++
		}
		d.fillTable(own, &w.Tables[next])
	}
	d.nameSlots()
}

// nameSlots copies slots from tables and lists into the arguments of digests and saves.
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

// closesAhead reports whether everything that closes the layer's blocks is known.
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

// closeAhead digests full blocks and copies them to the ring, if closesAhead.
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

// openGate releases the launches behind the gate, so that the GPU reads the layer's lists and loads
// the misses. It then sends full blocks to DRAM.
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
