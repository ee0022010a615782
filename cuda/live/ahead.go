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
// ten: behind the lookup, each would be time in which the GPU has nothing to do. In front of it they
// are behind a gate on the stream (cuda/host_gate.cu), which the host opens with one store once the
// layer's lists and loads are in pinned memory. No argument of these launches depends on what the
// lookup finds: lists are where the server said (sim.Work.Ahead), loads are counted on the GPU, and
// attention is divided for lists as long as the budget.
//
// It is done where all rows of a step are decodes, and what they launch is known: not with
// progressive attention, and not where a prefill's open block has to come from its stash first.
type ahead struct {
	layer  int   // whose launches are behind a closed gate; -1: none
	turn   int64 // of the last gate
	lists  *sim.Lists
	closes bool       // full blocks are digested and copied behind the gate, too
	chosen cuda.Event // the layer's selection is on the host

	gate     cuda.HostMemory // uint64, cuda.GateWord
	loads    cuda.HostMemory // addresses of a layer's loads, as long as lists can be, and of their slots
	src, dst []int64         // the same
	counted  mem.Buffer      // int64 on the GPU: loads of the layer
	// Numbers of decodes and of blocks in a list whose launches have been made without a gate: the
	// first launch of a kernel may load it, which waits for the GPU, and so for the gate.
	loaded map[[2]int32]bool
}

// open allocates the gate and launches one that is open.
func (a *ahead) open(m cuda.Machine, on cuda.Stream) (err error) {
	a.layer, a.loaded = -1, map[[2]int32]bool{}
	if a.chosen, err = m.EventCreate(); err != nil {
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

// openGates lets all go on that is launched: the run has ended, and what it computes no longer
// matters.
func (d *Device) openGates() {
	if a := &d.ahead; a.turn > 0 {
		a.set(a.turn, 0)
	}
}

// canLaunchAhead says whether a layer's launches are known before its lookup.
func (d *Device) canLaunchAhead(l *sim.Lists) bool {
	a, c := &d.ahead, &d.decodes
	if l == nil || c.n < len(d.rows) || a.loaded == nil || d.cfg.Spec.Progressive() ||
		d.cfg.Spec.LoadEngine != "flash" || d.cfg.Projected != nil {
		return false
	}
	if _, lent := d.stage.Lent(l.Count); !lent || d.queue.Err() != nil {
		return false
	}
	for i := range c.n {
		if d.stashedOpen(i) {
			return false
		}
	}
	shape := [2]int32{int32(c.n), d.listBlocks()}
	known := a.loaded[shape]
	a.loaded[shape] = true
	return known
}

// listBlocks are the most blocks that a decode's list can have.
func (d *Device) listBlocks() int32 { return int32(min(d.budget, d.decodes.most)) }

// launchAhead launches the rest of the layer behind a gate.
func (d *Device) launchAhead(layer int, l *sim.Lists) {
	a := &d.ahead
	write, decode := d.decodeArgs(layer)
	decode.MaxBlocks = d.listBlocks()
	d.readLists(l, write, decode)
	decode.Workspace = d.workspaceFor(decode, &d.workspace, "decode workspace")
	d.grow(&a.counted, 8, "loads counted")
	d.queue.Fail(a.hold(d.m, d.decodes.n*d.geo.KVHeads*l.Stride))
	if d.queue.Err() != nil {
		return
	}
	d.stage.Send()
	d.plan.clear()
	d.open = l.Open
	d.planFilled(write.Pool)
	d.planClosed(layer)
	a.closes = d.closesAhead()
	a.layer, a.lists = layer, l
	a.turn++
	from, to, bytes := d.stage.Part()
	d.launch(&cuda.HostGateArgs{Dst: to, Src: from, Bytes: bytes, Gate: a.gate.Ptr(),
		Turn: a.turn, Counted: a.counted.At})
	d.stage.Uploads++
	d.stage.UploadBytes += bytes
	d.counters.Gated++
	d.clock.mark(phaseHost)
	most := int64(len(a.src))
	d.launch(d.load(cuda.BlocksArgs{Src: a.loads.Ptr(), Dst: a.loads.Ptr() + cuda.Ptr(8*most),
		Count: most, BlockBytes: d.geo.BlockBytes, Counted: a.counted.At}))
	d.clock.mark(phaseLoadStall)
	d.launch(write)
	d.launch(decode)
	d.clock.mark(phaseSparse)
	if a.closes {
		d.launchClosings()
	}
	d.finishLayer(layer)
}

// closesAhead says whether all that closes the layer's blocks is uploaded with its lists.
func (d *Device) closesAhead() bool {
	p := &d.plan
	for i := range p.closed {
		if !d.stage.InPart(p.closed[i].digest.Dst) {
			return false
		}
	}
	for i := range p.saves {
		if c := p.saves[i].copy; c == nil || !d.stage.InPart(c.Src) {
			return false
		}
	}
	return true
}

// launchClosings digests full blocks and copies them to the ring.
func (d *Device) launchClosings() {
	p := &d.plan
	for i := range p.closed {
		d.launch(p.closed[i].digest)
		d.clock.mark(phaseScoring)
	}
	for i := range p.saves {
		d.launch(p.saves[i].copy)
		d.clock.mark(phaseSaveStall)
	}
}

// hold allocates memory for the addresses of so many loads. No gate is closed.
func (a *ahead) hold(m cuda.Machine, most int) (err error) {
	if len(a.src) >= most {
		return nil
	}
	if len(a.src) > 0 {
		if err := m.HostFree(a.loads); err != nil {
			return err
		}
		a.src, a.dst = nil, nil
	}
	most += most / 2
	if a.loads, err = m.HostAlloc(int64(16*most), cuda.DriverPages); err == nil {
		all := cuda.Slice[int64](a.loads)
		a.src, a.dst = all[:most], all[most:2*most]
	}
	return err
}

// openGate has the GPU read the layer's lists and load what they miss, and sends the blocks that the
// decodes' tokens filled to DRAM.
func (d *Device) openGate(layer int, w *sim.Work) {
	a, p := &d.ahead, &d.plan
	if w.Lists != a.lists {
		d.queue.Fail(errors.New("the lists of a layer moved after its selection"))
	}
	if d.queue.Err() != nil {
		return // closing opens it
	}
	for i := range p.saves {
		if s := &p.saves[i]; s.copy != nil {
			d.addressSource(s)
		}
	}
	a.layer = -1
	a.set(a.turn, int64(d.loading.count))
	d.counters.Loaded += int64(d.loading.count)
	d.loading.count = 0
	d.countSelected(w.Lists)
	if !a.closes {
		d.stage.Send()
		d.closeBlocks(layer)
		return
	}
	for i := range p.saves {
		d.submit(layer, &p.saves[i])
	}
}
