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
	cfg     Config
	owner   *mem.Owner
	m       cuda.Machine // the owner, then the queue before it
	queue   *queue.Queue // has the first failure
	geo     kv.Geometry
	model   *model
	offload bool
	sparse  bool
	budget  int // blocks that a decode selects

	stream cuda.Stream
	clock  clock
	arena  *mem.Arena
	stage  mem.Staging
	pool   cuda.Ptr // slots; without offloading [layer][page][KV head]
	pages  mem.Pages
	dram   *mem.HostPool // pages, with offloading
	saver  *saver        // with offloading

	requests map[int]*request
	bySeq    map[int32]*request

	step    sim.Step
	rows    []sim.Row
	of      []*request // by row
	active  active
	scratch scratch
	decodes decodes
	plan    plan
	hits    hits

	pageTables []pageTable // of the step's prefills, without offloading

	patterns patterns // of sparse prefill
	open     []int32  // of the layer: slot of each decode and KV head's open block
	loading  loading  // of the layer

	progressive progressive
	lookup      lookup
	prefetch    prefetch
	// 0, 1, 2, .. on both sides: rows of decodes, and slots of layer-segmented prefills.
	order         []int32
	digested      []digests       // of the requests whose digests' places were uploaded last
	workspace     mem.Buffer      // of decode attention
	selected      cuda.HostMemory // a layer's selection, on the host
	selectedWords int
	last          time.Time       // end of the last step, or of the wait for its saves
	began         time.Time       // what the running step counts from
	growing       time.Duration   // of the running step, not counted in it: memory, and texts
	grown         int             // how often a buffer grew
	tokens        cuda.HostMemory // [tokenRows] picked in this step
	counters      Counters
	returned      time.Time // when the last call returned
	idleFrom      time.Time // end of the last step and of the idle time since
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
	if err := d.setUp(); err != nil {
		_ = d.Close() // the first error is the one to show
		return nil, err
	}
	return d, nil
}

// Begin implements sim.Device.
func (d *Device) Begin(s *sim.Step) error {
	d.step, d.rows, d.growing = *s, s.Rows, 0
	defer d.enter(&d.counters.Planning, -1)()
	d.began = d.last
	for _, g := range s.Dropped {
		d.drop(g)
	}
	d.stage.Reset()
	d.active.clear()
	d.pageTables = d.pageTables[:0]
	d.loading.count, d.progressive.on, d.hits.layer = 0, false, -1
	if d.allocate(s); d.queue.Err() != nil {
		return d.queue.Err()
	}
	d.beginDecodes(s)
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

// Finish implements sim.Device.
func (d *Device) Finish() (t metrics.Timing, err error) {
	defer d.enter(&d.counters.Planning, -1)()
	d.pick()
	d.clock.mark(phaseHead)
	d.awaitLate()
	_ = d.queue.Drain()
	if !d.sync() {
		return t, d.queue.Err()
	}
	if d.queue.Fail(d.checkLookups()); d.queue.Err() != nil {
		return t, d.queue.Err()
	}
	d.emit()
	d.counters.Steps++
	d.freeSegments()
	t, err = d.timing()
	d.queue.Fail(err)
	return t, d.queue.Err()
}

// freeSegments frees the buffers of finished prefills and begun decodes.
func (d *Device) freeSegments() {
	for i, r := range d.of {
		if row := &d.rows[i]; row.Segmented && row.Emits {
			d.closeSegments(r)
			r.stashed = row.To%d.geo.BlockTokens != 0
		}
		if d.rows[i].Decode && r.stashed {
			d.free(&r.stash)
			r.stashed = false
		}
	}
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

func duration(d time.Duration) des.Time { return des.Time(d) }
