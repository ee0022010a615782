package latent

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/live/mem"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// Config describes a device.
type Config struct {
	Spec     *sim.Spec
	Geometry kv.Geometry
	Shape    Shape
	Seed     uint64
	// Finished receives a finished request: its prompt and its generated tokens.
	Finished func(id int, tokens []int32)
	// Logits receives the fp16 logits of every emitted token, for tests; it costs a copy.
	Logits func(id, position int, logits []cuda.Half)
	// Chosen receives a token's selection in a layer, for tests; it costs a copy. For decodes with
	// hot buffers, misses is the number of its rows that were read from the host; otherwise -1.
	Chosen func(id, position, layer int, tokens []int32, misses int)
}

// Counters count the device's work in rows: one token in one layer.
type Counters struct {
	Steps, Layers int64
	Selected      int64 // by decodes
	Loaded        int64 // of them, from the host: misses of hot buffers
	Saved         int64
	Growing       time.Duration // allocating memory; part of no step
}

// Device runs steps. It implements sim.Device. All calls come from the machine's thread.
type Device struct {
	cfg      Config
	shape    Shape
	m        *mem.Owner
	stream   cuda.Stream
	model    model
	arena    *mem.Arena
	dram     *mem.HostPool // with hot buffers
	slots    int           // of a hot buffer; 0: all KV is in HBM
	requests map[int]*request

	step     sim.Step
	batch    []*request // by row
	rows     rows
	scratch  scratch
	picked   cuda.HostMemory // int32 tokens, then misses [layers][decodes]
	counters Counters
	before   Counters // as the step began
	err      error    // the first
	grew     bool
	last     time.Time // end of the last step
	idle     time.Time
	growing  time.Duration
}

const arenaSlab = 256 << 20

// New creates the model and allocates the memory that steps share. The machine is initialised on
// this thread.
func New(m cuda.Machine, cfg Config) (*Device, error) {
	d := &Device{cfg: cfg, shape: cfg.Shape, m: &mem.Owner{Machine: m},
		requests: map[int]*request{}, slots: cfg.Spec.Offload.HotBuffer}
	if err := d.setUp(); err != nil {
		_ = d.Close() // the first error is the one to show
		return nil, err
	}
	return d, nil
}

func (d *Device) setUp() (err error) {
	s := &d.shape
	if err = s.validate(); err != nil {
		return err
	}
	if d.slots > 0 && (d.slots <= s.TopK || d.slots > cuda.SlotsMax) {
		return fmt.Errorf("live: offload.hot_buffer = %d: the kernel wants more slots than index_top_k "+
			"= %d, which it selects, and %d at most", d.slots, s.TopK, cuda.SlotsMax)
	}
	info, err := d.m.Device()
	if err != nil {
		return err
	}
	if most := mostTokens(info.SharedBytes, s.TopK); info.SharedBytes > 0 && s.Capacity > most {
		return fmt.Errorf("live: a context of %d tokens: the top-k of tokens is made in shared "+
			"memory, which has room for %d; shorten the workload", s.Capacity, most)
	}
	if d.stream, err = d.m.StreamCreate(true); err != nil {
		return err
	}
	if err = d.load(); err != nil {
		return err
	}
	d.arena = mem.NewArena(d.m, arenaSlab)
	words := int64(d.cfg.Spec.MaxRequests * (1 + s.Layers))
	if d.picked, err = d.m.HostAlloc(4*words, cuda.DriverPages); err != nil {
		return err
	}
	if d.slots > 0 {
		d.dram = mem.NewHostPool(d.m, d.cfg.Geometry.BlockBytes, s.Layers,
			int64(d.cfg.Spec.DRAMGiB*(1<<30)), 1)
	}
	if err = d.warm(); err != nil {
		return fmt.Errorf("warming up: %w", err)
	}
	d.counters, d.last = Counters{}, time.Now()
	d.idle = d.last
	return nil
}

// mostTokens returns the longest context whose top-k fits a CTA's shared memory (topk.cuh).
func mostTokens(shared, k int) int { return (shared - 4096 - 8*max(k, 128) - 8) / 4 }

// warm runs a generated request, so that kernels are loaded before the first counted step.
func (d *Device) warm() error {
	const id = -1
	quiet := d.cfg
	d.cfg.Finished, d.cfg.Logits, d.cfg.Chosen = nil, nil, nil
	prompt := min(8, d.shape.Capacity-1)
	for i, n := range []int{prompt, prompt + 1} {
		row := sim.Row{ID: id, Prompt: prompt, MaxTokens: prompt + 1, To: n, LayerTo: d.shape.Layers,
			Emits: true, Decode: i > 0}
		if row.Decode {
			row.From = prompt
		}
		if err := d.Begin(&sim.Step{Rows: []sim.Row{row}, Sampled: 1}); err != nil {
			return err
		}
		for layer := range d.shape.Layers {
			if err := d.Compute(layer, &sim.Work{}); err != nil {
				return err
			}
		}
		if _, err := d.Finish(); err != nil {
			return err
		}
	}
	d.drop(sim.Dropped{ID: id, Finished: true})
	d.cfg = quiet
	return d.err
}

// Begin implements sim.Device.
func (d *Device) Begin(s *sim.Step) error {
	d.step, d.before, d.growing, d.grew = *s, d.counters, 0, false
	start, slabs := time.Now(), d.arena.Slabs()
	for _, g := range s.Dropped {
		d.drop(g)
	}
	d.batch = d.batch[:0]
	for i := range s.Rows {
		d.batch = append(d.batch, d.request(&s.Rows[i]))
	}
	d.place()
	if d.grew || d.arena.Slabs() > slabs {
		d.growing = time.Since(start)
		d.counters.Growing += d.growing
	}
	d.send()
	return d.err
}

// Score implements sim.Device: the indexer is part of Compute.
func (d *Device) Score(int, *sim.Work) error { return d.err }

// Move implements sim.Device: the model's selection determines the moves.
func (d *Device) Move(*kv.Moves) error { return d.err }

// Compute implements sim.Device.
func (d *Device) Compute(layer int, _ *sim.Work) error {
	if d.err == nil && d.rows.tokens > 0 {
		d.layer(layer)
		d.counters.Layers++
	}
	return d.err
}

// Finish implements sim.Device.
func (d *Device) Finish() (t metrics.Timing, err error) {
	d.pick()
	if d.sync(); d.err != nil {
		return t, d.err
	}
	now := time.Now()
	t.Elapsed = des.Time(now.Sub(d.last) - d.growing)
	t.Phases.Unsplit, t.SavedSteps = t.Elapsed, d.step.Index+1
	d.last, d.idle = now, now
	d.counters.Steps++
	d.emit()
	return t, d.err
}

// Drain implements sim.Device: steps wait for their saves.
func (d *Device) Drain() (des.Time, error) { return 0, d.err }

// Swapped returns the rows that decodes selected and loaded in the last step.
func (d *Device) Swapped() (selected, loaded int64) {
	return d.counters.Selected - d.before.Selected, d.counters.Loaded - d.before.Loaded
}

// Counters returns the counts so far.
func (d *Device) Counters() Counters { return d.counters }

// Idle waits until idle time of the server's clock has passed, or ctx is done. The wait belongs to
// no step.
func (d *Device) Idle(ctx context.Context, idle des.Time) {
	d.idle = d.idle.Add(time.Duration(idle))
	select {
	case <-ctx.Done():
	case <-time.After(time.Until(d.idle)):
	}
	d.last = time.Now()
}

// Close waits for the work and frees everything.
func (d *Device) Close() error {
	var err error
	if d.stream != 0 {
		err = d.m.StreamSync(d.stream)
	}
	return cmp.Or(err, d.m.Close())
}

// fail keeps the first error.
func (d *Device) fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

// launch enqueues operations.
func (d *Device) launch(ops ...cuda.Operation) {
	for _, op := range ops {
		if d.err == nil {
			d.err = d.m.Launch(op, d.stream)
		}
	}
}

func (d *Device) sync() { d.fail(d.m.StreamSync(d.stream)) }

// grow gives a buffer at least the given bytes; its contents are lost.
func (d *Device) grow(b *mem.Buffer, bytes int, what string) {
	grew, err := b.Grow(d.m, d.stream, int64(bytes), what)
	d.fail(err)
	d.grew = d.grew || grew
}
