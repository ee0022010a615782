package live

import (
	"fmt"
	"time"

	"sparseserve/cuda"
)

// attendRounds attends and loads, round by round. Pipelined, the two cannot be told apart and count as attention.
func (d *Device) attendRounds(layer int) (err error) {
	p, l := &d.progressive, &d.loading
	switch {
	case l.count == 0:
		err = d.launchRounds(0, p.rounds)
	case p.pipelined && d.cfg.Spec.LoadEngine == "flash":
		err = d.pipelineByKernel()
	default:
		start := time.Now()
		if p.pipelined {
			err = d.pipelineByEngine()
		} else {
			err = d.byTurns()
		}
		d.counters.InRounds += time.Since(start)
	}
	if err != nil {
		return err
	}
	d.counters.Loaded += int64(l.count)
	l.count = 0
	if err := d.clock.mark(phaseSparse); err != nil || d.cfg.Attended == nil {
		return err
	}
	return d.showUsed(layer)
}

// showUsed gives the kernel's count of what was attended to, to whoever asked for it.
func (d *Device) showUsed(layer int) error {
	heads := d.geo.KVHeads
	units := d.decodes.n * heads
	host, err := d.m.HostAlloc(int64(4*units), cuda.DriverPages)
	if err != nil {
		return err
	}
	if err := d.m.Memcpy(&cuda.MemcpyArgs{Dst: host.Ptr(), Src: d.progressive.used.at, Bytes: int64(4 * units)}, d.stream); err != nil {
		return err
	}
	if err := d.m.StreamSync(d.stream); err != nil {
		return err
	}
	for unit, n := range cuda.Slice[int32](host)[:units] {
		row := &d.rows[unit/heads]
		d.cfg.Attended(row.ID, row.From, layer, unit%heads, int(n))
	}
	return d.m.HostFree(host)
}

// launchRounds attends to rounds [from, to).
func (d *Device) launchRounds(from, to int) error {
	a := d.progressive.args
	a.Flag, a.First, a.Steps = 0, int32(from), int32(to-from)
	return d.m.PSA(&a, d.stream)
}

// loadRounds loads what rounds [from, to) need.
func (d *Device) loadRounds(from, to int, on cuda.Stream) error {
	a := loadsOf(d.loading.args, d.progressive.before, from, to)
	if a.Count == 0 {
		return nil
	}
	if err := d.loader()(&a, on); err != nil {
		return fmt.Errorf("loading %d blocks for rounds %d to %d: %w", a.Count, from, to-1, err)
	}
	return nil
}

// loadsOf is the part of a layer's loads that rounds [from, to) need.
func loadsOf(a cuda.BlocksArgs, before []int64, from, to int) cuda.BlocksArgs {
	first := before[from]
	a.Src, a.Dst, a.Count = a.Src+cuda.Ptr(8*first), a.Dst+cuda.Ptr(8*first), before[to]-first
	return a
}

// last is the number of rounds, those that only loads were meant for included.
func (p *progressive) last() int { return len(p.before) - 1 }

// byTurns loads for a round, attends up to the next one that needs loads, and waits for its verdict before it loads for that.
func (d *Device) byTurns() error {
	p := &d.progressive
	for from := 0; from < p.rounds; {
		if from > 0 {
			if err := d.m.StreamSync(d.stream); err != nil {
				return err
			}
			if err := d.clock.mark(phaseHost); err != nil {
				return err
			}
		}
		if err := d.loadRounds(from, from+1, d.stream); err != nil {
			return err
		}
		if err := d.clock.mark(phaseLoadStall); err != nil {
			return err
		}
		to := from + 1
		for to < p.rounds && p.before[to] == p.before[to+1] {
			to++
		}
		if err := d.launchRounds(from, to); err != nil {
			return err
		}
		if err := d.clock.mark(phaseSparse); err != nil {
			return err
		}
		from = to
	}
	return d.loadRounds(p.rounds, p.last(), d.stream)
}

// turn returns where the launch that begins with a round ends: with the next round that loads. Rounds that no list reaches have none.
func turn(before []int64, from, reached int) (to int) {
	for to = from + 1; to < len(before)-1 && to != reached && before[to] == before[to+1]; {
		to++
	}
	return to
}

// pipelineByKernel is the pipeline of the library, run by the queue's thread.
func (d *Device) pipelineByKernel() error {
	p, l := &d.progressive, &d.loading
	before, at, err := d.stage.note(len(p.before))
	if err != nil {
		return err
	}
	copy(before, p.before)
	p.ahead = p.ahead || p.before[p.rounds] < p.before[p.last()]
	return d.queue.Rounds(&rounds{
		args: cuda.PSAPipelineArgs{
			LoadFirst: at, Src: l.args.Src, Dst: l.args.Dst, BlockBytes: l.args.BlockBytes,
			Microbatches: int32(p.last()), Depth: pipelineDepth, Loads: p.stream, Reached: int32(p.rounds),
		},
		psa: p.args, before: before, reached: p.rounds, late: p.late,
	}, d.stream)
}

// loadLate loads what is left for rounds that no list reaches, behind the other loads, and notes that all such loads are still to be waited for.
func (d *Device) loadLate(from int) error {
	p := &d.progressive
	if p.before[p.rounds] == p.before[p.last()] {
		return nil
	}
	if err := d.loadRounds(from, p.last(), p.stream); err != nil {
		return err
	}
	p.ahead = true
	return d.m.EventRecord(p.late, p.stream)
}

// awaitLate has the GPU wait for the loads that no attention waited for: they write to slots that may have another owner by now.
func (d *Device) awaitLate() error {
	p := &d.progressive
	if !p.ahead {
		return nil
	}
	p.ahead = false
	return d.m.StreamWait(d.stream, p.late)
}

// pipelineByEngine is the same with an engine that copies.
func (d *Device) pipelineByEngine() error {
	p := &d.progressive
	n := 0
	for from := 0; from < p.rounds; n++ {
		slot, to := n%pipelineDepth, turn(p.before, from, p.rounds)
		if n >= pipelineDepth {
			if err := d.m.EventSync(p.computed[slot]); err != nil {
				return err
			}
		}
		on := d.stream
		if n > 0 {
			on = p.stream
		}
		if err := d.loadRounds(from, from+1, on); err != nil {
			return err
		}
		if n == 0 {
			if err := d.after(p.start, d.stream, p.stream); err != nil {
				return err
			}
		} else if err := d.after(p.loaded[slot], p.stream, d.stream); err != nil {
			return err
		}
		if err := d.launchRounds(from, to); err != nil {
			return err
		}
		if err := d.m.EventRecord(p.computed[slot], d.stream); err != nil {
			return err
		}
		from = to
	}
	if p.rounds == p.last() {
		return nil
	}
	if n >= pipelineDepth {
		if err := d.m.EventSync(p.computed[n%pipelineDepth]); err != nil {
			return err
		}
	}
	return d.loadLate(p.rounds)
}

// after makes what a stream gets from now on wait for what another has so far.
func (d *Device) after(e cuda.Event, on, waits cuda.Stream) error {
	if err := d.m.EventRecord(e, on); err != nil {
		return err
	}
	return d.m.StreamWait(waits, e)
}
