package cost

import (
	"errors"
	"fmt"
	"math"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// DeviceOptions is the system's use of the card.
type DeviceOptions struct {
	LoadEngine string // memcpy | flash; needed when blocks are loaded
	SaveEngine string // memcpy | gpu | flash; needed when blocks are saved
	// Offload adds a GPU-CPU round trip to each layer with scoring: the CPU looks up which selected
	// blocks to load.
	Offload bool
	// GPULookup does the lookup on the GPU, so no layer waits for the CPU.
	GPULookup bool
	// SaveBufferBytes is the KV bytes that may wait for D2H before compute stalls; at 0 each layer
	// waits for its own saves.
	SaveBufferBytes int64
	// BlockTokens is the tokens of a KV block, for prefill after a prefix; 0: the prefix is in
	// tensors.
	BlockTokens int
	// HotSlots is the tokens of a request's hot buffer, whose misses LoadSwap loads; 0: no hot
	// buffers. BlockTokens slots hold a block.
	HotSlots       int
	ScatterThreads int // CPU threads of FlashD2H; 0 = the profile's
	// TopP samples tokens by top-p, which sorts the logits.
	TopP bool
	// Pipelined loads the next round's blocks of progressive attention during the attention of the
	// present round.
	Pipelined bool
	// Prefix configures the transfer of cached prefixes.
	Prefix PrefixOptions
}

// Device prices a step on one card. It implements sim.Device. It is not safe for concurrent use. No
// call allocates in steady state.
//
// The timeline of a step:
//
//   - Begin passes the host's time for the step, and for the blocks freed before it.
//   - Score passes the scoring kernels and, with offload, the layer's round trip, unless the GPU
//     does the lookup.
//   - Move waits for saves of earlier steps if the layer may load their blocks (Host), and then
//     starts its loads. Attention needs the loaded blocks, so the step waits (LoadStall). A
//     concurrent save queue shares the link's duplex limit; both are slowed alike. Prefixes of
//     prefills load layer by layer, overlapped with the layer before (moves.go).
//   - Compute passes the overhead between a layer's kernels, including the GPU's lookup (Linears,
//     layer_overhead.go), linears and attention.
//     Progressive attention includes the loads of its rounds (progressive_timeline.go). While the
//     card's clock is low, linears and attention of prefill take longer (clock.go). An overlapping
//     GPU scatter kernel slows compute (SaveStall). The layer's saves join the D2H queue after its
//     QKV linear, and the step waits until the queue fits the save buffer (SaveStall).
//   - Finish passes embedding, LM head and sampling. If the CPU's launches of layers with block
//     selection took longer than the GPU's work, it passes the difference (Host). The queue
//     carries over to the next step.
type Device struct {
	costs           coster    // of every layer of a plain model
	classes         []*coster // per layer, for a model that is not plain
	loader          *transfer // nil without a load engine
	saver           *transfer // nil without a save engine
	project         gemm      // of MTP layers
	opts            DeviceOptions
	model           *llm.Model
	reduce          *allReduce // nil with one GPU per model
	engine          engineTime
	sync            roundTrip
	swap            *swapIn  // nil without hot buffers
	continueLatency des.Time // of progressive attention, until the CPU acts on a result
	duplex          float64  // bytes/s of both directions together
	clock           clock
	overhead        layerOverhead
	saves           saveQueue
	prefixes        prefixLinks
	pending         int64 // blocks that the layer's Compute will queue for D2H
	bytes           int64 // per pending block

	running bool
	step    sim.Step
	tokens  int      // embedded in this step
	layers  int      // computed in this step
	busy    des.Time // of the GPU in this step
	loading des.Time // of the link, DRAM to HBM, in this step
	lagged  des.Time // host time after the GPU's end of the step
	rested  bool     // the GPU was idle before the step
	scored  bool     // the present layer called Score

	queued      float64  // bytes of saves queued by this step
	linkFree    des.Time // when loads that no attention waits for have landed
	bytesLoaded int64    // per block that progressive attention loads
	prefixFrom  des.Time // from when the layer's part of prefixes can load
	prefixAfter des.Time // link time of loads up to prefixFrom
	layerDelay  float64  // of a layer throughout which a kernel loads, ns

	bigPool bool     // the host pool is larger than measured
	now     des.Time // virtual time
	phases  metrics.Phases
}

// NewDevice returns a device that models one card serving one model.
func NewDevice(gpu *hw.Profile, model *llm.Model, opts DeviceOptions) (*Device, error) {
	if err := gpu.Validate(); err != nil {
		return nil, fmt.Errorf("profile %s: %w", gpu.Name, err)
	}
	if err := model.Validate(); err != nil {
		return nil, fmt.Errorf("model %s: %w", model.Name, err)
	}
	if err := hasLinears(gpu, model); err != nil {
		return nil, err
	}
	if opts.SaveBufferBytes < 0 {
		return nil, fmt.Errorf("save buffer: want 0 bytes or more, got %d", opts.SaveBufferBytes)
	}
	if opts.GPULookup && !gpu.GPULookup() {
		return nil, fmt.Errorf("profile %s has no overhead of layers whose lists the GPU looks up "+
			"(layer_overhead, lookup = \"gpu\"); calibrate the card, or set offload.lookup = \"host\"",
			gpu.Name)
	}
	d := &Device{
		costs:   newCoster(gpu, model, &opts),
		project: newProjection(gpu, model),
		opts:    opts,
		model:   model,
		engine:  newEngineTime(&gpu.EngineCosts, graphsOf(gpu, model)),
		sync:    newRoundTrip(gpu),
		duplex:  gpu.Link.DuplexCopy.SI(),
	}
	if d.continueLatency = nanoseconds(gpu.Host.ContinueLatency.Optional()); d.continueLatency == 0 {
		d.continueLatency = nanoseconds(d.sync.sync)
	}
	d.classes = newClasses(gpu, model, &d.costs, &d.opts)
	var err error
	if d.reduce, err = newAllReduce(gpu, model); err != nil {
		return nil, err
	}
	d.prefixes = newPrefixLinks(gpu, opts.Prefix)
	d.layerDelay = gpu.Load.LayerDelay.Optional() * float64(des.Second)
	d.clock = newClock(gpu)
	d.overhead = newLayerOverhead(gpu, &opts)
	if opts.LoadEngine != "" {
		l, err := newLoader(gpu, opts.LoadEngine)
		if err != nil {
			return nil, err
		}
		d.loader = &l
	}
	if opts.HotSlots > 0 {
		d.swap = newSwapIn(gpu, opts.HotSlots)
	}
	if opts.SaveEngine != "" {
		s, err := newSaver(gpu, opts.SaveEngine, opts.ScatterThreads)
		if err != nil {
			return nil, err
		}
		d.saver = &s
	}
	if opts.LoadEngine == LoadFlash || opts.LoadEngine == LoadSwap || opts.SaveEngine == SaveGPU {
		d.duplex = math.Min(d.duplex, gpu.Link.DuplexKernel.SI())
	}
	return d, nil
}

// Begin implements sim.Device.
func (d *Device) Begin(s *sim.Step) error {
	if d.running {
		return errors.New("hw: Begin before Finish")
	}
	if s.Start < d.now {
		return fmt.Errorf("hw: step %d starts at %v, before the last one's end at %v", s.Index, s.Start,
			d.now)
	}
	d.running, d.step, d.phases = true, *s, metrics.Phases{}
	d.rested = s.Start > d.now
	before := d.engine.begin(s, d.rested)
	d.now, d.tokens, d.layers = s.Start, 0, 0
	d.busy, d.loading, d.scored = 0, 0, false
	d.costs.notes.bits = 0
	d.costs.known = false // so that this step sets its own notes
	for _, c := range d.classes {
		c.known = false
	}
	if d.loader != nil {
		d.bigPool = d.loader.over(s.DRAMBytes)
	}
	if d.saver != nil {
		d.saver.over(s.DRAMBytes)
	}
	d.saves.advance(d.now)
	d.queued = 0
	d.pass(before, &d.phases.Host)
	d.beginPrefix()
	return nil
}

// at returns the cost model of a layer.
func (d *Device) at(layer int) *coster {
	if d.classes == nil {
		return &d.costs
	}
	return d.classes[layer]
}

// Score implements sim.Device.
func (d *Device) Score(layer int, w *sim.Work) error {
	if !d.running {
		return errors.New("hw: Score outside a step")
	}
	d.scored = true
	c := d.at(layer).layer(w)
	d.compute(c.scoring, &d.phases.Scoring)
	if d.swap != nil {
		d.costs.notes.mark(noteSwap, w.Swapped > 0 && !d.swap.measured, 0)
		d.compute(d.swap.walk(w.Swapped), &d.phases.Scoring)
		return nil
	}
	if d.opts.Offload && !d.opts.GPULookup {
		sync := nanoseconds(d.sync.of(ListBytes(d.model, float64(w.DecodeTokens))))
		d.pass(sync, &d.phases.Host)
	}
	return nil
}

// Compute implements sim.Device.
func (d *Device) Compute(layer int, w *sim.Work) error {
	first := d.layers == 0
	if err := d.layer(layer, w); err != nil {
		return err
	}
	if first {
		d.embed(w)
	}
	return nil
}

// embed records the tokens of the step and passes the host's time for prompt tokens.
func (d *Device) embed(w *sim.Work) {
	d.tokens = w.Tokens
	d.pass(d.engine.prompts(w.Tokens-w.Decodes*(1+w.Drafts)), &d.phases.Host)
}

// layer passes the time of one layer.
func (d *Device) layer(layer int, w *sim.Work) error {
	if !d.running {
		return errors.New("hw: Compute outside a step")
	}
	d.awaitPrefix(layer)
	d.scored = false
	d.prefixFrom, d.prefixAfter = d.now, d.loading // the other buffer is free
	c := d.at(layer).layer(w)
	linears, prefill, overhead := c.linears, c.prefill, d.overhead.of(w)
	if len(w.Prefill) > 0 {
		slowLinears, slowPrefill := d.clock.run(&c.chunk, d.now, overhead)
		linears += nanoseconds(slowLinears)
		prefill += nanoseconds(slowPrefill)
	}
	d.compute(overhead, &d.phases.Linears)
	d.upToSaves(w, linears)
	d.compute(prefill, &d.phases.PrefillAttention)
	d.compute(c.index, &d.phases.PrefillIndex)
	d.compute(c.choice, &d.phases.Scoring)
	d.compute(c.dense, &d.phases.DenseAttention)
	if len(w.Rounds) > 0 {
		d.rounds(w)
	} else {
		d.compute(c.sparse, &d.phases.SparseAttention)
	}
	d.compute(2*d.reduce.of(d.hidden(w.Tokens)), &d.phases.AllReduce) // attention's output and FFN's
	d.engine.layer(w)
	d.layers++
	return nil
}

// Finish implements sim.Device.
func (d *Device) Finish() (metrics.Timing, error) {
	if !d.running {
		return metrics.Timing{}, errors.New("hw: Finish outside a step")
	}
	d.enqueue() // saves of a Move without a following Compute
	d.compute(nanoseconds(d.costs.head.seconds(d.tokens, d.step.Sampled)), &d.phases.Head)
	// All-reduce of embeddings; gather of each rank's logits, which moves half of the bytes of an
	// all-reduce.
	d.compute(d.reduce.of(d.hidden(d.tokens))+d.reduce.of(float64(d.step.Sampled*d.model.Logits())),
		&d.phases.AllReduce)
	d.awaitLate()
	return d.end(), nil
}

// end waits for the host and returns the step's timing.
func (d *Device) end() metrics.Timing {
	before := d.now
	if idle := d.engine.launched - d.busy; idle > 0 {
		d.pass(idle, &d.phases.Host)
	}
	if late := d.engine.host - (d.now - d.step.Start); late > 0 { // the host planned ahead
		d.pass(late, &d.phases.Host)
	}
	d.lagged = d.now - before
	d.running = false
	saving := d.saves.busy
	d.saves.busy = 0
	d.loading += d.prefixBusy(d.now - d.step.Start - d.loading)
	return metrics.Timing{
		Elapsed:      d.now - d.step.Start,
		Phases:       d.phases,
		Busy:         metrics.Busy{GPU: d.busy, H2D: d.loading, D2H: saving},
		SavesDone:    max(0, d.saves.done()-d.step.Start),
		SavedSteps:   d.step.Index + 1,
		Extrapolated: d.costs.notes.bits,
	}
}

// Drain implements sim.Device. It returns the time from the step's start until all saves have
// landed.
func (d *Device) Drain() (des.Time, error) {
	return max(0, d.saves.done()-d.step.Start), nil
}

// hidden returns the bytes of the hidden states of tokens.
func (d *Device) hidden(tokens int) float64 {
	return float64(int64(tokens*d.model.Hidden) * d.model.WideBytes())
}

// pass advances time on the critical path and charges it to phase.
func (d *Device) pass(t des.Time, phase *des.Time) {
	d.now += t
	*phase += t
	d.saves.advance(d.now)
}

// compute passes GPU time. While a GPU scatter kernel takes share c of its speed, t becomes
// t/(1-c).
func (d *Device) compute(t des.Time, phase *des.Time) {
	if t == 0 {
		return
	}
	*phase += t
	if d.saves.work > 0 && d.saver != nil && d.saver.contention > 0 {
		c := d.saver.contention
		lost := des.Time(math.Ceil(min(float64(t)*c/(1-c), float64(d.saves.work)*c)))
		d.phases.SaveStall += lost
		t += lost
	}
	d.busy += t
	d.now += t
	d.saves.advance(d.now)
}
