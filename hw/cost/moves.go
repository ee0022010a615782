package cost

import (
	"errors"
	"fmt"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/kv"
)

// Move implements sim.Device.
func (d *Device) Move(m *kv.Moves) error {
	if !d.running {
		return errors.New("hw: Move outside a step")
	}
	if min(m.Loads, m.Prefix, m.Joined, m.Saves, m.BlockBytes) < 0 {
		return fmt.Errorf("hw: layer %d moves %d and %d loads, %d saves of %d bytes, %d joined", m.Layer,
			m.Loads, m.Prefix, m.Saves, m.BlockBytes, m.Joined)
	}
	if m.Prefix > 0 {
		if d.loader == nil {
			return fmt.Errorf("hw: layer %d loads %d blocks of prefixes without a load engine", m.Layer,
				m.Prefix)
		}
		d.loadPrefix(m.Prefix, m.BlockBytes)
	}
	if m.Loads > 0 {
		if d.loader == nil {
			return fmt.Errorf("hw: layer %d loads %d blocks without a load engine", m.Layer, m.Loads)
		}
		if m.SavesInFlight {
			d.awaitSaves()
		}
	}
	switch {
	case m.Loads == 0:
	case d.swap != nil: // row by row
		d.loadRows(m)
	case m.InRounds:
		d.bytesLoaded = m.BlockBytes
	default:
		d.load(m.Loads, m.BlockBytes)
	}
	if m.Saves > 0 {
		if d.saver == nil {
			return fmt.Errorf("hw: layer %d saves %d blocks without a save engine", m.Layer, m.Saves)
		}
		if d.pending > 0 && d.bytes != m.BlockBytes {
			return fmt.Errorf("hw: layer %d saves blocks of %d and %d bytes", m.Layer, d.bytes, m.BlockBytes)
		}
		d.pending += m.Saves
		d.bytes = m.BlockBytes
	}
	return nil
}

// loadRows loads the rows of hot buffers and waits for them.
func (d *Device) loadRows(m *kv.Moves) {
	before, tokens := d.now, int64(d.opts.BlockTokens)
	d.load(m.Loads*tokens, m.BlockBytes/tokens)
	late := nanoseconds(d.swap.longest(m.Longest*m.BlockBytes)) - (d.now - before)
	d.pass(max(0, late), &d.phases.LoadStall)
}

// beside returns the work that a load of the time unshared and saves, which go on for the time
// saving, do while the other runs, and how long they take for it within the link's duplex limit.
func (d *Device) beside(unshared, saving des.Time, bytes float64) (both, slowed des.Time) {
	if both = min(unshared, saving); both <= 0 {
		return 0, 0
	}
	moved := bytes*float64(both)/float64(unshared) + d.saves.bytesOf(both)
	return both, max(both, nanoseconds(moved/d.duplex))
}

// load waits for n blocks. If saves run meanwhile and both exceed the link's duplex limit, both are
// slowed by the same factor. A prefix that loads meanwhile waits.
func (d *Device) load(n, blockBytes int64) {
	d.awaitLate()
	d.costs.notes.mark(notePool, d.bigPool, float64(d.step.DRAMBytes)/(1<<30))
	q := &d.saves
	unshared := nanoseconds(d.loader.seconds(n, blockBytes))
	both, slowed := d.beside(unshared, q.work, float64(n)*float64(blockBytes))
	d.loading += unshared - both + slowed
	d.prefixes.wait(d.now, unshared-both+slowed)
	if slowed == both {
		d.pass(unshared, &d.phases.LoadStall)
		return
	}
	q.drain(slowed, both)
	d.now += slowed
	d.phases.LoadStall += slowed
	d.pass(unshared-both, &d.phases.LoadStall)
}

// delayed returns the extra time of a layer of time w beside which a gather kernel loads the next
// layer's prefixes for the time t, because the GPU reads its launches over the link that the kernel
// fills:
//
//	delay min(1, t / (w + delay))
func (d *Device) delayed(t, w des.Time) des.Time {
	if w == 0 {
		return 0
	}
	return des.Time(d.layerDelay * min(1, float64(t)/(float64(w)+d.layerDelay)))
}

// loadPrefix waits for a layer's part of the prefixes of this step's prefills. Nothing overlaps
// with the load of the first layer. Later layers load into a second buffer, from the begin of the
// layer before, except while the link loads other blocks. A gather kernel slows the
// computed layer.
func (d *Device) loadPrefix(n, blockBytes int64) {
	d.awaitLate()
	t := nanoseconds(d.loader.seconds(n, blockBytes))
	if d.layers == 0 {
		d.loading += t
		d.pass(t, &d.phases.LoadStall)
		return
	}
	if d.loader.engine == LoadFlash {
		d.pass(d.delayed(t, d.now-d.prefixFrom), &d.phases.LoadStall)
	}
	landed := d.prefixFrom + d.loading - d.prefixAfter + t
	d.loading += t
	d.pass(max(0, landed-d.now), &d.phases.LoadStall)
}

// upToSaves passes a layer's linears. After the QKV linear, when K and V exist, it queues the
// layer's saves. Attention and most linears overlap with them, so most saves are done when the next
// layer's loads need the link.
func (d *Device) upToSaves(w *sim.Work, linears des.Time) {
	first := des.Time(d.costs.qkv * float64(linears))
	d.compute(first, &d.phases.Linears)
	d.enqueue()
	d.compute(linears-first, &d.phases.Linears)
}

// awaitSaves waits until all saves of earlier steps are in DRAM, because a block must be there
// before it is loaded. The CPU waits before it lists the loads, and the GPU waits for the CPU. The
// live loop waits only for the blocks that it loads, so this is an upper bound; it is tight just
// after a prefill, when the loaded blocks are the last saved.
func (d *Device) awaitSaves() {
	if t := d.saves.until(int64(d.queued)); t > 0 {
		d.pass(t, &d.phases.Host)
	}
}

// enqueue queues the layer's saves for D2H and waits until the queue fits the save buffer.
func (d *Device) enqueue() {
	if d.pending == 0 {
		return
	}
	d.costs.notes.mark(noteScatter, d.saver.outside, float64(d.opts.ScatterThreads))
	work := nanoseconds(d.saver.seconds(d.pending, d.bytes))
	d.saves.push(d.pending*d.bytes, work)
	d.queued += float64(d.pending * d.bytes)
	d.pending = 0
	d.pass(d.saves.until(d.opts.SaveBufferBytes), &d.phases.SaveStall)
}
