package live

import (
	"fmt"
	"slices"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/live/mem"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/kv"
)

// progressive runs attention round by round, one microbatch of each unit's list per round (PSA
// §3.2, §3.3). The loads of a round precede it:
//
//	nothing to load   all rounds in one launch
//	not pipelined     load | rounds up to the next that loads | wait | load | ..
//	pipelined         the same, but a second stream loads during the attention of earlier rounds,
//	                  and the queue's thread waits only until it is pipelineDepth launches ahead
//
// The next layer waits for loads of rounds that no list reaches, before it accesses the cache.
//
// The server decides the blocks that a unit, a KV head of a request, attends to: its list ends
// where Algorithm 1 stops with the weights of the score process, not of the model that runs here.
// So the kernels get epsilon = 1: the seen share never exceeds it before the list ends, and a unit
// is done exactly when its list ends. Verification costs the same with any epsilon. The kernels
// verify each unit separately; where the heads of a layer end together (selection.stop = "layer"),
// their lists end in the same round.
type progressive struct {
	micro     int
	pipelined bool

	on     bool    // the layer's loads come in rounds
	loads  []load  // of the layer, as loading names them, in the order of their rounds
	before []int64 // loads of the rounds before each round, and of all
	rounds int     // that attend to something
	args   cuda.PSAArgs

	state, used, done mem.Buffer  // used and done: int32 [decodes][KVHeads]
	stream            cuda.Stream // that loads during attention
	pipelineEvents
	ahead bool // some loads for rounds that no list reaches are not waited for yet
}

type pipelineEvents struct {
	start            cuda.Event
	loaded, computed [pipelineDepth]cuda.Event // of launches, a ring
	late             cuda.Event                // after loads for rounds that no list reaches
}

// load identifies the round and the unit (-1: a prefill) of a block to load.
type load struct{ unit, round int32 }

// pipelineDepth is the number of launches in flight: one attends, and the blocks of the next are
// loaded.
const pipelineDepth = 2

// open prepares a device with progressive attention.
func (p *progressive) open(m cuda.Machine, s *sim.Spec) (err error) {
	p.micro, p.pipelined = s.Selection.Microbatch, s.Selection.Pipelined
	events := []*cuda.Event{&p.start, &p.late}
	for i := range pipelineDepth {
		events = append(events, &p.loaded[i], &p.computed[i])
	}
	p.stream, err = streamAndEvents(m, events...)
	return err
}

// nameRounds records the rounds and units of the layer's loads.
func (d *paged) nameRounds(m *kv.Moves) {
	p := &d.progressive
	p.on, p.loads = m.InRounds, p.loads[:0]
	if !p.on {
		return
	}
	seq, row := int32(-1), -1
	for i := range m.LoadRefs {
		ref := &m.LoadRefs[i]
		if ref.Seq != seq {
			seq = ref.Seq
			row = slices.IndexFunc(d.rows[:d.decodes.n],
				func(r sim.Row) bool { return r.Seq == ref.Seq })
		}
		unit := int32(-1)
		if row >= 0 {
			unit = int32(row*d.geo.KVHeads + int(ref.Group)%d.geo.KVHeads)
		}
		if unit < 0 && d.lookup.on {
			continue // the lookup brings it back before the first round
		}
		p.loads = append(p.loads, load{unit, ref.Round})
	}
}

// planRounds prepares the layer's progressive attention from the lists of planDecodes.
func (d *paged) planRounds(l *sim.Lists) {
	p, a, units := &d.progressive, d.plan.decode, d.decodes.n*d.geo.KVHeads
	slot := a.Slot
	if !d.offload {
		slot = d.slotsOfPages(l, units)
	}
	d.grow(&p.used, int64(units)*4, "progressive attention")
	d.grow(&p.done, int64(units)*4, "progressive attention")
	p.args = cuda.PSAArgs{
		Q: a.Q, Pool: a.Pool, Context: a.Context, Order: a.List, Count: a.Count, Slot: slot,
		Out: a.Out, Used: p.used.At, Done: p.done.At,
		Batch: a.Batch, HeadsQ: a.HeadsQ, HeadsKV: a.HeadsKV, HeadDim: a.HeadDim,
		BlockTokens: a.BlockTokens, OrderStride: a.ListStride,
		Micro: int32(p.micro), Scale: a.Scale, Epsilon: 1,
	}
	p.args.State = d.workspaceFor(&p.args, &p.state, "progressive attention")
}

// slotsOfPages writes the slots of listed blocks in the layer's part of the pool.
func (d *paged) slotsOfPages(l *sim.Lists, units int) cuda.Ptr {
	slots, at := d.stage.Words(units * l.Stride)
	heads := d.geo.KVHeads
	for unit := range units {
		pages := d.of[unit/heads].pages
		for i, b := range l.Block[unit*l.Stride:][:l.Count[unit]] {
			slots[unit*l.Stride+i] = pages[b]*int32(heads) + int32(unit%heads)
		}
	}
	return at
}

// countRounds finds the start of each round's loads, and the loads for rounds that no list reaches.
func (d *paged) countRounds(l *sim.Lists) {
	p := &d.progressive
	p.rounds = (int(d.plan.decode.MaxBlocks) + p.micro - 1) / p.micro
	d.counters.Rounds += int64(p.rounds)
	p.before = append(p.before[:0], 0)
	for i := range p.loads {
		n := &p.loads[i]
		if int(n.round)+2 < len(p.before) {
			d.queue.Fail(fmt.Errorf("load %d is for round %d, the one before it for round %d",
				i, n.round, len(p.before)-2))
			return
		}
		for len(p.before) <= int(n.round)+1 {
			p.before = append(p.before, int64(i))
		}
		p.before[n.round+1] = int64(i + 1)
		if n.unit >= 0 && int(n.round) > int(l.Count[n.unit]-1)/p.micro {
			d.counters.Ahead++
		}
	}
	for len(p.before) <= p.rounds {
		p.before = append(p.before, int64(len(p.loads)))
	}
}
