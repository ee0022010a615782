package live

import (
	"time"

	"sparseserve/cuda"
	"sparseserve/cuda/weights"
	"sparseserve/sim"
	"sparseserve/sim/des"
	"sparseserve/sim/kv"
)

// Config describes a device.
type Config struct {
	Spec     *sim.Spec
	Geometry kv.Geometry
	Weights  weights.Source
	KVBytes  int64 // sim.Config.HBMBytes
	Seed     uint64
	// Selects has decodes attend to what the model's own metadata chose; else it
	// is timed only, and the server's lists say.
	Selects bool
	// Heat is how long linears run before the first step on a GPU, so that it begins on a card at work; a rest follows (afterHeat).
	Heat time.Duration
	// SaveThreads are those of the CPU that copy FlashD2H's saves to their blocks, at most; 0 is saveThreads.
	SaveThreads int
	// SplitEvery says which steps are split into phases: each n-th; 0 is none.
	SplitEvery int64
	// Prompt returns a request's tokens; nil makes them up.
	Prompt func(id int) []int32
	// Finished sees a finished request: prompt and what was generated.
	Finished func(id int, tokens []int32)
	// Logits sees the fp16 logits of every emitted token, for tests; it costs a copy.
	Logits func(id int, position int, logits []cuda.Half)
	// Attended sees how many blocks of its list each KV head of a decode's position attended to, by progressive attention's own count, for tests;
	// it costs a copy.
	Attended func(id, position, layer, head, blocks int)
	// Chosen sees the blocks that each KV head of a decode's position chose, for tests; it costs a copy.
	Chosen func(id, position, layer, head int, blocks []int32)
}

// Device carries out steps. It implements sim.Device. All calls come from the thread that the Machine wants.
type Device struct {
	cfg     Config
	m       Machine // the queue, once the model is loaded
	queue   *queue  // counts the calls of the compute stream
	geo     kv.Geometry
	model   *model
	offload bool
	sparse  bool
	budget  int // blocks that a decode selects

	stream cuda.Stream
	clock  clock
	arena  *arena
	stage  *staging
	pool   cuda.Ptr // slots; without offloading [layer][page][KV head]
	pages  pages
	dram   *hostPool // pages, with offloading
	saver  *saver    // with offloading

	requests map[int]*request
	bySeq    map[int32]*request

	step    sim.Step
	rows    []sim.Row
	of      []*request // by row
	active  active
	scratch scratch
	decodes decodes
	plan    plan
	open    []int32 // of the layer: slot of each decode and KV head's open block
	loading loading // of the layer

	progressive progressive
	lookup      lookup
	// 0, 1, 2, .. on both sides: rows of decodes, and slots of layer-segmented prefills.
	order         []int32
	digested      []digests       // of the requests whose digests' places were uploaded last
	workspace     buffer          // of decode attention
	selected      cuda.HostMemory // a layer's selection, on the host
	selectedWords int
	last          time.Time       // end of the last step, or of the wait for its saves
	began         time.Time       // what the running step counts from
	growing       time.Duration   // of the running step, not counted in it
	grown         int             // how often a buffer grew
	tokens        cuda.HostMemory // [tokenRows] picked in this step
	counters      Counters
	left          time.Time // when the last call returned
	idleFrom      time.Time // when the last step ended, and the idle gaps since
}

// pages hands out pages of DRAM with offloading, of HBM without.
type pages interface {
	take() (int32, error)
	give([]int32)
}

// Counters are what the device has really done, to be held against what the server counts.
type Counters struct {
	Steps, Loaded, Saved, Layers, RoundTrips int64
	Uploads, UploadBytes                     int64         // copies of what the host knows to the GPU
	Calls                                    int64         // of the driver that put work on the compute stream
	Selected                                 int64         // blocks that decodes read by lists of the server
	Rounds                                   int64         // of progressive attention, over all layers
	Ahead                                    int64         // of Loaded, for rounds of a decode's head that never came
	Growing                                  time.Duration // of pinned and device memory; not part of any step
	Saving                                   time.Duration // that computation waited for room in the save buffer
	Waiting                                  time.Duration // of the host, for selections
	// Lookup, Lists and Planning are the server's: between Score and Move (or what came before it), with offloading the lists too; before Compute;
	// and between steps.
	Lookup, Lists, Planning time.Duration
	// Elapsed is all steps, Working what of them had passed before the host's threads had nothing left to do but wait for the GPU's end; InRounds, of
	// Working, is in rounds of progressive attention that load, where one of them waits for verdicts.
	Elapsed, Working, InRounds time.Duration
}

const (
	arenaSlab = 1 << 30 // of pinned host memory too
)

// New loads the model and takes the memory for the cache. The machine is initialised on this thread.
func New(m Machine, cfg Config) (*Device, error) {
	s := cfg.Spec
	d := &Device{
		cfg: cfg, m: m, geo: cfg.Geometry, offload: s.Offload, sparse: s.Sparse(),
		requests: map[int]*request{}, bySeq: map[int32]*request{}, last: time.Now(),
	}
	if err := d.setUp(); err != nil {
		_ = d.Close() // the first error is the one to show
		return nil, err
	}
	return d, nil
}

// Begin implements sim.Device.
func (d *Device) Begin(s *sim.Step) error {
	d.enter(&d.counters.Planning)
	defer d.leave()
	d.began = d.last
	d.step, d.rows, d.growing = *s, s.Rows, 0
	d.queue.at(s.Index, -1)
	d.queue.rouse()
	if err := d.begin(s); err != nil {
		return told(err, "step %d", s.Index)
	}
	return nil
}

func (d *Device) begin(s *sim.Step) error {
	for _, g := range s.Dropped {
		if err := d.drop(g); err != nil {
			return err
		}
	}
	d.stage.reset()
	d.active.clear()
	d.loading.count, d.progressive.on = 0, false
	if err := d.take(s); err != nil {
		return err
	}
	if err := d.beginDecodes(s); err != nil {
		return err
	}
	every := d.cfg.SplitEvery
	return d.clock.start(every > 0 && s.Index%every == 0)
}

// take gives the rows what memory they need. Growing it, pinned memory above all, is a cost of starting up and not counted in the step, so that
// saves stand still meanwhile.
func (d *Device) take(s *sim.Step) error {
	if d.saver != nil {
		// What the queue still had to hand over could find the saver full, and wait for it.
		if err := d.queue.drain(); err != nil {
			return err
		}
		d.saver.hold()
		defer d.saver.letGo()
	}
	start, grown := time.Now(), d.growths()
	d.of = d.of[:0]
	for i := range s.Rows {
		r, err := d.request(&s.Rows[i])
		if err != nil {
			return err
		}
		d.of = append(d.of, r)
	}
	if err := d.size(s); err != nil {
		return err
	}
	if d.stage.wanted > 0 {
		d.grown++
		if err := d.stage.divide(); err != nil {
			return err
		}
	}
	if d.growths() > grown {
		d.growing = time.Since(start)
		d.counters.Growing += d.growing
	}
	return nil
}

// growths counts how often memory has been asked of the driver.
func (d *Device) growths() int {
	n := d.grown + len(d.arena.slabs)
	if d.dram != nil {
		n += d.dram.made
	}
	return n
}

// Finish implements sim.Device.
func (d *Device) Finish() (sim.Timing, error) {
	d.enter(&d.counters.Planning)
	defer d.leave()
	d.queue.at(d.step.Index, -1)
	t, err := d.finish()
	if err != nil {
		return t, told(err, "step %d", d.step.Index)
	}
	return t, nil
}

func (d *Device) finish() (t sim.Timing, err error) {
	if err = d.pick(); err != nil {
		return t, err
	}
	if err = d.clock.mark(phaseHead); err != nil {
		return t, err
	}
	if err = d.awaitLate(); err != nil {
		return t, err
	}
	if err = d.queue.drain(); err != nil {
		return t, err
	}
	d.counters.Working += time.Since(d.began) - d.growing
	d.counters.Calls += d.queue.launched
	d.counters.InRounds += d.queue.inRounds
	d.queue.launched, d.queue.inRounds = 0, 0
	if err = d.m.StreamSync(d.stream); err != nil {
		return t, err
	}
	if err = d.checkLookups(); err != nil {
		return t, err
	}
	if err = d.emit(); err != nil {
		return t, err
	}
	d.counters.Steps++
	for i, r := range d.of {
		if row := &d.rows[i]; row.Segmented && row.Emits {
			d.closeSegments(r)
			r.stashed = row.To%d.geo.BlockTokens != 0
		}
		if d.rows[i].Decode && r.stashed {
			d.arena.give(r.stash)
			r.stash, r.stashed = piece{}, false
		}
	}
	d.last = time.Now()
	d.idleFrom = d.last
	t.Elapsed = duration(d.last.Sub(d.began) - d.growing)
	d.counters.Elapsed += time.Duration(t.Elapsed)
	if t.Phases, err = d.clock.split(t.Elapsed); err != nil {
		return t, err
	}
	if d.clock.on { // what reading the events takes belongs to no step
		d.last = time.Now()
		d.idleFrom = d.last
	}
	t.Landed = d.step.Index + 1
	if d.saver != nil {
		var at time.Time
		if t.Landed, at, err = d.saver.landed(t.Landed); err != nil {
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
	defer d.leave()
	at, err := d.saver.drain()
	d.last = time.Now()
	if err != nil {
		return 0, told(err, "after step %d", d.step.Index)
	}
	return max(0, duration(at.Sub(d.began)-d.growing)), nil
}

// Counters returns what has been done so far.
func (d *Device) Counters() Counters { return d.counters }

func duration(d time.Duration) des.Time { return des.Time(d) }
