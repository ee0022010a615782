package live

import (
	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/sim/kv"
)

// move implements attention: it records the layer's misses and their slots. attend loads them after
// the single upload of addresses and the layer's other arrays. Saves follow from its writes.
func (d *paged) move(m *kv.Moves) {
	d.nameRounds(m)
	// else Score has begun the layer, and attend marks the round trip
	if d.active.layer != m.Layer {
		d.clock.mark(phaseHost)
	}
	if d.lookup.on {
		d.nameChanges(m)
	} else if len(m.LoadRefs) > 0 {
		d.nameLoads(m.LoadRefs)
	}
}

// loading is the part of Move that is deferred to Compute.
type loading struct {
	count int
	args  cuda.BlocksArgs
}

func (d *paged) nameLoads(refs []kv.BlockRef) {
	n := len(refs)
	addresses, at := d.loadAddresses(n)
	var r *request // of a run of blocks: one lookup, and a wait only while saves are in flight
	for i := range refs {
		ref := &refs[i]
		if i == 0 || ref.Seq != refs[i-1].Seq || int(ref.Block) >= len(r.pages) || len(r.saves) > 0 {
			if r = d.savedIn(ref); r == nil {
				return
			}
		}
		addresses[i] = int64(d.dram.Block(r.pages[ref.Block], int(ref.Group)))
		addresses[n+i] = int64(d.pool) + int64(ref.Slot)*d.geo.BlockBytes
	}
	d.loading = loading{n, cuda.BlocksArgs{
		Src: at, Dst: at + cuda.Ptr(8*n), Count: int64(n), BlockBytes: d.geo.BlockBytes,
	}}
}

// startLoads loads the misses of Move; the engine can read the addresses. With the GPU's lookup
// only the GPU knows the misses, so the gather is always launched.
func (d *paged) startLoads() {
	l := &d.loading
	none := l.count == 0
	if d.lookup.on {
		none = d.lookup.args.Batch == 0
	}
	if d.progressive.on || none {
		return
	}
	d.launch(d.load(l.args))
	d.counters.Loaded += int64(l.count)
	l.count = 0
	d.clock.mark(phaseLoadStall)
}

// load copies blocks with the system's engine.
func (d *paged) load(a cuda.BlocksArgs) cuda.Operation {
	if d.cfg.Spec.Offload.Load == "flash" {
		return (*cuda.FlashH2DArgs)(&a)
	}
	return (*cuda.MemcpyBlocksArgs)(&a)
}
