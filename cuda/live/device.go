package live

import (
	"time"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/live/mem"
	"github.com/sparseserve/sparseserve/cuda/live/queue"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// Device runs steps. It implements sim.Device. All calls come from the machine's thread.
type Device struct {
	cfg       Config
	owner     *mem.Owner
	m         cuda.Machine // the owner, then the queue before it
	queue     *queue.Queue // has the first failure
	geo       kv.Geometry
	model     *model
	attention attention
	offload   bool
	sparse    bool

	stream  cuda.Stream
	streams []cuda.Stream // all
	clock   clock
	arena   *mem.Arena
	stage   mem.Staging
	pages   mem.Pages
	dram    *mem.HostPool // pages, with offloading
	saver   *saver        // of full blocks, with offloading

	requests map[int]*request
	bySeq    map[int32]*request // with offloading

	step    sim.Step
	rows    []sim.Row
	of      []*request // by row
	active  active
	scratch scratch

	last     time.Time       // end of the last step, or of the wait for its saves
	began    time.Time       // what the running step counts from
	growing  time.Duration   // of the running step, not counted in it: memory, and texts
	grown    int             // how often a buffer grew
	tokens   cuda.HostMemory // int32 [MaxRequests] picked in this step
	counters Counters
	before   Counters  // when the running step began
	returned time.Time // when the last call returned
	idleFrom time.Time // end of the last step and of the idle time since
}

// attention is the part of a device that depends on the model's attention: *paged attends to blocks
// of tokens, *latent to tokens.
type attention interface {
	open() error                  // before the first step
	hold(*request, *sim.Row)      // memory of a row's request
	size(*sim.Step)               // memory that the step works in
	begin(*sim.Step)              // uploads what all layers need
	score(layer int, w *sim.Work) // before move
	move(*kv.Moves)
	project(layer int)             // queries, keys and values, from scratch.h
	attend(layer int, w *sim.Work) // to scratch.attn
	end()                          // the last launches of a step
	ended() error                  // once the stream is idle
}

const (
	arenaSlab = 1 << 30 // of pinned host memory too
)

// New loads the model and allocates the cache. The machine is initialised on this
// thread.
func New(m cuda.Machine, cfg Config) (*Device, error) {
	s := cfg.Spec
	d := &Device{
		cfg: cfg, owner: &mem.Owner{Machine: m}, geo: cfg.Geometry,
		offload: s.Offload.On, sparse: s.Sparse(),
		requests: map[int]*request{}, bySeq: map[int32]*request{}, last: time.Now(),
	}
	d.m = d.owner
	if md := cfg.Weights.Config(); md.IsLatent() {
		d.attention = &latent{Device: d, slots: s.Offload.HotBuffer}
	} else {
		d.attention = &paged{Device: d}
	}
	if err := d.setUp(); err != nil {
		_ = d.Close() // the first error is the one to show
		return nil, err
	}
	return d, nil
}

// Begin implements sim.Device.
func (d *Device) Begin(s *sim.Step) error {
	d.step, d.rows, d.growing, d.before = *s, s.Rows, 0, d.counters
	defer d.enter(&d.counters.Planning, -1)()
	d.began = d.last
	for _, g := range s.Dropped {
		d.drop(g)
	}
	d.stage.Reset()
	d.active.clear()
	if d.allocate(s); d.queue.Err() != nil {
		return d.queue.Err()
	}
	d.attention.begin(s)
	every := d.cfg.SplitEvery
	d.clock.start(every > 0 && s.Index%every == 0)
	return d.queue.Err()
}

// allocate allocates the rows' memory. Its growth, mostly of pinned memory, is start-up cost: it is
// not counted in the step, and saves stop meanwhile. The generation of texts is not counted either,
// because clients would send them.
func (d *Device) allocate(s *sim.Step) {
	if d.saver != nil {
		// Work in the queue could find the saver full and wait for it.
		if d.queue.Drain() != nil {
			return
		}
		d.saver.hold()
		defer d.saver.release()
	}
	start, grown := time.Now(), d.growths()
	if d.meet(s.Rows) {
		d.growing = time.Since(start)
	}
	d.of = d.of[:0]
	for i := range s.Rows {
		d.of = append(d.of, d.request(&s.Rows[i]))
	}
	d.size(s)
	if d.growths() > grown {
		d.growing = time.Since(start)
		d.counters.Growing += d.growing
	}
}

// growths returns how often memory has been allocated.
func (d *Device) growths() int {
	n := d.grown + d.arena.Slabs()
	if d.dram != nil {
		n += d.dram.Pinned()
	}
	return n
}

// Score implements sim.Device.
func (d *Device) Score(layer int, w *sim.Work) error {
	defer d.enter(&d.counters.Lookup, layer)()
	d.attention.score(layer, w)
	return d.queue.Err()
}

// Move implements sim.Device.
func (d *Device) Move(m *kv.Moves) error {
	defer d.enter(&d.counters.Lookup, m.Layer)()
	d.attention.move(m)
	return d.queue.Err()
}

// Finish implements sim.Device.
func (d *Device) Finish() (t metrics.Timing, err error) {
	defer d.enter(&d.counters.Planning, -1)()
	d.pick()
	d.clock.mark(phaseHead)
	d.attention.end()
	if !d.sync() {
		return t, d.queue.Err()
	}
	if d.queue.Fail(d.attention.ended()); d.queue.Err() != nil {
		return t, d.queue.Err()
	}
	d.emit()
	d.counters.Steps++
	t, err = d.timing()
	d.queue.Fail(err)
	return t, d.queue.Err()
}

// timing ends the step's clocks; the stream is idle.
func (d *Device) timing() (t metrics.Timing, err error) {
	d.last = time.Now()
	d.idleFrom = d.last
	t.Elapsed = duration(d.last.Sub(d.began) - d.growing)
	d.counters.Elapsed += time.Duration(t.Elapsed)
	if t.Phases, err = d.clock.split(t.Elapsed); err != nil {
		return t, err
	}
	if d.clock.on { // the time to read the events belongs to no step
		d.last = time.Now()
		d.idleFrom = d.last
	}
	t.SavedSteps = d.step.Index + 1
	if d.saver != nil {
		var at time.Time
		if t.SavedSteps, at, err = d.saver.saved(t.SavedSteps); err != nil {
			return t, err
		}
		t.SavesDone = max(0, min(t.Elapsed, duration(at.Sub(d.began))))
	}
	return t, nil
}

// Drain implements sim.Device.
func (d *Device) Drain() (des.Time, error) {
	if d.saver == nil {
		return 0, nil
	}
	defer d.end()
	at, err := d.saver.drain()
	d.last = time.Now()
	if d.queue.Fail(err); err != nil {
		return 0, d.queue.Err()
	}
	return max(0, duration(at.Sub(d.began)-d.growing)), nil
}

// Swapped returns the rows that decodes of a model with latent attention selected, and loaded from
// the host, in the last step.
func (d *Device) Swapped() (selected, loaded int64) {
	return d.counters.Selected - d.before.Selected, d.counters.Loaded - d.before.Loaded
}

func duration(d time.Duration) des.Time { return des.Time(d) }
