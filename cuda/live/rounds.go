package live

import (
	"cmp"
	"slices"

	"github.com/sparseserve/sparseserve/cuda"
)

// attendRounds attends and loads, round by round. If pipelined, the two cannot be separated and
// both count as attention.
func (d *paged) attendRounds(layer int) {
	p, l := &d.progressive, &d.loading
	switch {
	case l.count == 0:
		d.launchRounds(0, p.rounds)
	case p.pipelined:
		d.pipeline()
	default:
		d.alternate()
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
func (d *paged) launchRounds(from, to int) {
	d.launch(roundsOf(d.progressive.args, from, to))
}

func roundsOf(a cuda.PSAArgs, from, to int) *cuda.PSAArgs {
	a.First, a.Steps = int32(from), int32(to-from)
	return &a
}

// loadRounds loads the blocks of rounds [from, to).
func (d *paged) loadRounds(from, to int) {
	if a := loadsOf(d.loading.args, d.progressive.before, from, to); a.Count > 0 {
		d.launch(d.load(a))
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
func (d *paged) alternate() {
	p := &d.progressive
	for from, to := 0, 0; from < p.rounds; from = to {
		if from > 0 {
			if !d.sync() {
				return
			}
			d.clock.mark(phaseHost)
		}
		d.loadRounds(from, from+1)
		d.clock.mark(phaseLoadStall)
		to = nextLaunch(p.before, from, p.rounds)
		d.launchRounds(from, to)
		d.clock.mark(phaseSparse)
	}
	d.loadRounds(p.rounds, p.last())
}

// nextLaunch returns the end of the launch that begins at round from: the next round with loads, or
// the number of rounds that lists reach.
func nextLaunch(before []int64, from, reached int) (to int) {
	for to = from + 1; to < len(before)-1 && to != reached && before[to] == before[to+1]; {
		to++
	}
	return to
}

// pipeline loads and attends on the queue's thread, launch by launch: a launch is a round that
// loads and the rounds after it that do not. From the second launch on, a second stream loads
// during the attention of earlier launches. The thread waits until it is pipelineDepth launches
// ahead.
func (d *paged) pipeline() {
	p := &d.progressive
	t := &pipelined{events: &p.pipelineEvents, stream: d.stream, loads: p.stream, load: d.load,
		blocks: d.loading.args, psa: p.args, before: slices.Clone(p.before), rounds: p.rounds}
	p.ahead = p.ahead || p.before[p.rounds] < p.before[p.last()]
	_ = d.queue.Do(t.run, nil) // no caller waits for the rounds
}

// pipelined is the pipeline of one layer.
type pipelined struct {
	events        *pipelineEvents
	stream, loads cuda.Stream
	load          func(cuda.BlocksArgs) cuda.Operation
	blocks        cuda.BlocksArgs
	psa           cuda.PSAArgs
	before        []int64
	rounds        int
}

func (t *pipelined) run(m cuda.Machine) (err error) {
	e, last := t.events, len(t.before)-1
	do := func(next error) { err = cmp.Or(err, next) }
	load := func(from, to int, on cuda.Stream) {
		if a := loadsOf(t.blocks, t.before, from, to); a.Count > 0 {
			do(m.Launch(t.load(a), on))
		}
	}
	// after makes later work of stream waits wait for the work of stream on so far.
	after := func(e cuda.Event, on, waits cuda.Stream) {
		do(m.EventRecord(e, on))
		do(m.StreamWait(waits, e))
	}
	n := 0
	for from, to := 0, 0; from < t.rounds && err == nil; from, n = to, n+1 {
		slot := n % pipelineDepth
		if n >= pipelineDepth {
			do(m.EventSync(e.computed[slot]))
		}
		if n == 0 {
			load(from, from+1, t.stream)
			after(e.start, t.stream, t.loads)
		} else {
			load(from, from+1, t.loads)
			after(e.loaded[slot], t.loads, t.stream)
		}
		to = nextLaunch(t.before, from, t.rounds)
		do(m.Launch(roundsOf(t.psa, from, to), t.stream))
		do(m.EventRecord(e.computed[slot], t.stream))
	}
	if err != nil || t.before[t.rounds] == t.before[last] {
		return err
	}
	if n >= pipelineDepth {
		do(m.EventSync(e.computed[n%pipelineDepth]))
	}
	load(t.rounds, last, t.loads)
	do(m.EventRecord(e.late, t.loads))
	return err
}

// awaitLate makes the GPU wait for loads that no attention waited for: they write to slots that may
// have another owner by now.
func (d *paged) awaitLate() {
	if p := &d.progressive; p.ahead {
		p.ahead = false
		_ = d.queue.StreamWait(d.stream, p.late)
	}
}
