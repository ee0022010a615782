package live

import (
	"fmt"
	"time"

	"github.com/sparseserve/sparseserve/cuda"
)

// attendRounds attends and loads, round by round. If pipelined, the two cannot be separated and
// both count as attention.
func (d *Device) attendRounds(layer int) {
	p, l := &d.progressive, &d.loading
	start := time.Now()
	switch {
	case l.count == 0:
		d.launchRounds(0, p.rounds)
	case !p.pipelined:
		d.alternate()
		d.counters.InRounds += time.Since(start)
	case d.cfg.Spec.Offload.Load == "flash":
		d.pipelineByKernel()
	default:
		d.pipelineByEngine()
		d.counters.InRounds += time.Since(start)
	}
	d.counters.Loaded += int64(l.count)
	l.count = 0
	d.clock.mark(phaseSparse)
	if d.cfg.Attended == nil {
		return
	}
	heads := d.geo.KVHeads
	units := d.decodes.n * heads
	d.show(p.used.At, int64(4*units), func(m cuda.HostMemory) {
		for unit, n := range cuda.Slice[int32](m)[:units] {
			row := &d.rows[unit/heads]
			d.cfg.Attended(row.ID, row.From, layer, unit%heads, int(n))
		}
	})
}

// launchRounds attends to rounds [from, to).
func (d *Device) launchRounds(from, to int) {
	a := d.progressive.args
	a.Flag, a.First, a.Steps = 0, int32(from), int32(to-from)
	d.launch(&a)
}

// loadRounds loads the blocks of rounds [from, to).
func (d *Device) loadRounds(from, to int, on cuda.Stream) {
	if a := loadsOf(d.loading.args, d.progressive.before, from, to); a.Count > 0 {
		_ = d.queue.Launch(d.load(a), on)
	}
}

// loadsOf returns the part of a layer's loads that rounds [from, to) need.
func loadsOf(a cuda.BlocksArgs, before []int64, from, to int) cuda.BlocksArgs {
	first := before[from]
	a.Src, a.Dst, a.Count = a.Src+cuda.Ptr(8*first), a.Dst+cuda.Ptr(8*first), before[to]-first
	return a
}

// last returns the number of rounds, including rounds that no list reaches but that have loads.
func (p *progressive) last() int { return len(p.before) - 1 }

// alternate loads for a round, attends up to the next round that needs loads, and waits for the
// result of the stopping rule before the next loads.
func (d *Device) alternate() {
	p := &d.progressive
	for from, to := 0, 0; from < p.rounds; from = to {
		if from > 0 {
			if !d.sync() {
				return
			}
			d.clock.mark(phaseHost)
		}
		d.loadRounds(from, from+1, d.stream)
		d.clock.mark(phaseLoadStall)
		to = nextLaunch(p.before, from, p.rounds)
		d.launchRounds(from, to)
		d.clock.mark(phaseSparse)
	}
	d.loadRounds(p.rounds, p.last(), d.stream)
}

// nextLaunch returns the end of the launch that begins at round from: the next round with loads, or
// the number of rounds that lists reach.
func nextLaunch(before []int64, from, reached int) (to int) {
	for to = from + 1; to < len(before)-1 && to != reached && before[to] == before[to+1]; {
		to++
	}
	return to
}

// pipelineByKernel runs the library's pipeline on the queue's thread.
func (d *Device) pipelineByKernel() {
	p, l := &d.progressive, &d.loading
	before, at := d.stage.Note(len(p.before))
	copy(before, p.before)
	p.ahead = p.ahead || p.before[p.rounds] < p.before[p.last()]
	psa := p.args
	t := &pipelineTask{
		args: cuda.PSAPipelineArgs{
			PSA: &psa, LoadFirst: at, Src: l.args.Src, Dst: l.args.Dst,
			BlockBytes: l.args.BlockBytes, Microbatches: int32(p.last()), Depth: pipelineDepth,
			Loads: p.stream, Reached: int32(p.rounds),
		},
		stream: d.stream, before: before, late: p.late, counts: &d.inRounds,
	}
	t.args.Loaded = &t.begun
	_ = d.queue.Do(t)
}

// pipelineTask runs the library's pipeline of progressive attention, which waits for the stopping
// rule, and then issues the loads that the pipeline omitted. The pipeline stops loading when every
// unit is done, before or after it has started the next round, but for the server all named blocks
// are in HBM. For the same reason loads of finished units are not omitted (no owner).
type pipelineTask struct {
	args   cuda.PSAPipelineArgs
	stream cuda.Stream
	before []int64    // loads before each round, in pinned memory
	late   cuda.Event // after loads for other rounds, if there are any
	begun  int32
	counts *pipelineCounts
}

// pipelineCounts counts the work of the queue's thread; it is read after the queue is drained.
type pipelineCounts struct {
	launched int64
	spent    time.Duration
}

// count adds the counts to the device's counters and resets them.
func (p *pipelineCounts) count(c *Counters) {
	c.Calls += p.launched
	c.InRounds += p.spent
	*p = pipelineCounts{}
}

// Run implements queue.Task.
func (t *pipelineTask) Run(m cuda.Machine) error {
	start := time.Now()
	defer func() { t.counts.spent += time.Since(start) }()
	if err := m.Launch(&t.args, t.stream); err != nil {
		return err
	}
	begun, reached, last := int(t.begun), int(t.args.Reached), len(t.before)-1
	if begun < reached {
		return fmt.Errorf("progressive attention ended after %d of %d rounds", begun, reached)
	}
	for from := 0; from < begun; from = nextLaunch(t.before, from, reached) {
		if from < reached {
			t.counts.launched++
		}
		if t.before[from] < t.before[from+1] {
			t.counts.launched++
		}
	}
	if t.before[reached] == t.before[last] {
		return nil
	}
	all := cuda.BlocksArgs{Src: t.args.Src, Dst: t.args.Dst, BlockBytes: t.args.BlockBytes}
	if a := loadsOf(all, t.before, begun, last); a.Count > 0 {
		if err := m.Launch((*cuda.FlashH2DArgs)(&a), t.args.Loads); err != nil {
			return fmt.Errorf("loading %d blocks for rounds %d to %d: %w", a.Count, begun, last-1,
				err)
		}
		t.counts.launched++
	}
	return m.EventRecord(t.late, t.args.Loads)
}

// Abandon implements queue.Task. No caller waits for the rounds.
func (t *pipelineTask) Abandon(error) {}

// awaitLate makes the GPU wait for loads that no attention waited for: they write to slots that may
// have another owner by now.
func (d *Device) awaitLate() {
	if p := &d.progressive; p.ahead {
		p.ahead = false
		_ = d.queue.StreamWait(d.stream, p.late)
	}
}

// pipelineByEngine is the pipeline for copy engines.
func (d *Device) pipelineByEngine() {
	p := &d.progressive
	n := 0
	for from, to := 0, 0; from < p.rounds; from, n = to, n+1 {
		slot := n % pipelineDepth
		if n >= pipelineDepth {
			d.queue.Fail(d.m.EventSync(p.computed[slot]))
		}
		if n == 0 {
			d.loadRounds(from, from+1, d.stream)
			d.after(p.start, d.stream, p.stream)
		} else {
			d.loadRounds(from, from+1, p.stream)
			d.after(p.loaded[slot], p.stream, d.stream)
		}
		to = nextLaunch(p.before, from, p.rounds)
		d.launchRounds(from, to)
		_ = d.queue.EventRecord(p.computed[slot], d.stream)
	}
	if p.before[p.rounds] == p.before[p.last()] {
		return
	}
	if n >= pipelineDepth {
		d.queue.Fail(d.m.EventSync(p.computed[n%pipelineDepth]))
	}
	d.loadRounds(p.rounds, p.last(), p.stream)
	p.ahead = true
	_ = d.queue.EventRecord(p.late, p.stream)
}

// after makes later work of stream waits wait for the work of stream on so far.
func (d *Device) after(e cuda.Event, on, waits cuda.Stream) {
	_ = d.queue.EventRecord(e, on)
	_ = d.queue.StreamWait(waits, e)
}
