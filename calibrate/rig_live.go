package calibrate

import (
	"context"
	"fmt"
	"slices"

	"sparseserve/cuda"
	"sparseserve/cuda/live"
	"sparseserve/cuda/weights"
	"sparseserve/hw"
	"sparseserve/sim"
	"sparseserve/sim/des"
	"sparseserve/sim/dsa"
	"sparseserve/sim/kv"
	"sparseserve/traces"
)

// The live loop itself: a server with equal requests on the live device, of which the steps that only decode are samples.

const (
	// The first decode step of all follows the last prefill; a few more let the loop settle.
	liveSettling = 4
	// liveTight is the room for selected blocks under probeLiveLoads, of what one step selects.
	liveTight = 1.1

	liveRun    = 16                    // steps of a sample
	liveBudget = 2048                  // tokens that a decode selects
	livePrompt = liveBudget + 1024     // so that it has to choose
	liveKV     = int64(6) << 30        // bytes of HBM and of DRAM, for 16 requests of 6 layers
	liveMemory = liveKV + int64(6)<<30 // with weights and activations
)

// prepareLive readies decode steps of some requests in a model of some layers. A sample is the time of a step that the GPU's events did not
// see, the host's: the median of liveRun steps in a row, since a server takes longer to set up than to take many steps.
func (g *rig) prepareLive(p Point) (Timed, error) {
	m, err := shapeModel(p.Shape)
	if err != nil {
		return nil, err
	}
	if g.info.MemoryBytes-g.info.MemoryBusyBytes-g.slabBytes < liveMemory {
		return nil, fmt.Errorf("%w: less than %s of device memory beside the buffers", ErrSkip, size(liveMemory))
	}
	model := *m
	model.Layers = int(p.At("layers"))
	return func(warmup, repeats int) (samples []float64, err error) {
		err = g.lib.Do(func(s *cuda.Session) error {
			steps, err := liveSteps(s, &model, p.Probe, int(p.At("requests")), (warmup+repeats)*liveRun)
			for run := range slices.Chunk(steps, liveRun) {
				samples = append(samples, medianOf(run).Value)
			}
			return err
		})
		if err != nil { // the loop asks more of a machine than its kernels do, and there is a profile without it (fitHost)
			return nil, dispensable(p, err)
		}
		return samples[warmup:], nil
	}, nil
}

// liveServer is the configuration of a server of requests that all arrive at once, but for its device.
func liveServer(model *hw.Model, probe string, requests int) sim.Config {
	spec := sim.Spec{
		Attention: "full", Selection: "arkvale", BudgetTokens: liveBudget, BlockTokens: blockTokens, LoadEngine: "flash", SaveEngine: "flash", Eviction: "lru", Pool: "unified",
		Utilisation: 0.9, DRAMGiB: float64(liveKV) / gib, SaveBuffer: 256, Base: "vllm", MaxRequests: requests, MaxTokens: 2048, Window: 12,
		Prefill: "chunked", ChunkTokens: 2048, OverLength: "truncate", Heads: "full",
	}
	cfg := sim.Config{
		Model:    sim.Model{Layers: model.Layers, KVHeads: model.KVHeads, Hidden: model.Hidden, MaxContext: 2 * livePrompt},
		Geometry: model.Geometry(spec.BlockTokens), HBMBytes: liveKV,
	}
	if probe != probeLive {
		spec.Attention, spec.Offload, spec.SinkBlocks, spec.WindowBlocks = "sparse", true, 2, 2
		cfg.Library = dsa.NewLibrary(traces.NewScores(traces.DefaultScores, 1), dsa.TopK{K: sim.Candidates(&spec)}, dsa.Setting{Digest: dsa.CuboidMean, Sinks: 2, Window: 2}, 1)
	}
	if probe == probeLiveLoads { // room for little more than what a step selects
		const selected, exist = liveBudget/blockTokens + 1, 2 * livePrompt / blockTokens
		g := &cfg.Geometry
		cfg.HBMBytes = int64(requests*g.Groups()) * (int64(liveTight*float64(selected*g.BlockBytes)) + exist*g.MetaBytes)
	}
	cfg.Spec = spec
	return cfg
}

// liveSteps serves requests that all arrive at once and returns the host's time of as many decode steps of all of them.
func liveSteps(m live.Machine, model *hw.Model, probe string, requests, steps int) (samples []float64, err error) {
	cfg := liveServer(model, probe, requests)
	cfg.Detail = true
	source, err := weights.NewRandom(weights.Config{
		Layers: model.Layers, Hidden: model.Hidden, HeadsQ: model.QHeads, HeadsKV: model.KVHeads, HeadDim: model.HeadDim, FFN: model.FFN, Vocab: model.Vocab,
	}, 1)
	if err != nil {
		return nil, err
	}
	device, err := live.New(m, live.Config{Spec: &cfg.Spec, Geometry: cfg.Geometry, Weights: source, KVBytes: cfg.HBMBytes, SplitEvery: 1})
	if err != nil {
		return nil, err
	}
	defer func() {
		if e := device.Close(); err == nil {
			err = e
		}
	}()
	cfg.Device = device
	rec, err := liveRecord(cfg, steps)
	if err != nil {
		return nil, err
	}
	if got := device.Counters(); got.Loaded != rec.loaded {
		return nil, fmt.Errorf("wrong result: the device loaded %d blocks, the server counts %d", got.Loaded, rec.loaded)
	}
	return rec.seconds[liveSettling : liveSettling+steps], nil
}

// liveLoads is how many blocks each layer loads a step under probeLiveLoads, rounded: of the same server on a device that does nothing.
func liveLoads(model *hw.Model, requests int) (int64, error) {
	cfg := liveServer(model, probeLiveLoads, requests)
	cfg.Device = &idle{}
	const steps = 2 * liveRun
	rec, err := liveRecord(cfg, steps)
	if err != nil {
		return 0, err
	}
	loads := int64(0)
	for _, n := range rec.loads[liveSettling : liveSettling+steps] {
		loads += n
	}
	return (loads + int64(steps*model.Layers)/2) / int64(steps*model.Layers), nil
}

// liveRecord serves requests until liveSettling and as many decode steps of all of them as are asked for are recorded.
func liveRecord(cfg sim.Config, steps int) (*hostTimes, error) {
	requests := cfg.Spec.MaxRequests
	server, err := sim.NewServer(cfg)
	if err != nil {
		return nil, err
	}
	rec := &hostTimes{requests: requests}
	if _, err := server.Run(context.Background(), &equalRequests{left: requests, output: 2*requests + liveSettling + steps + 2}, rec); err != nil {
		return nil, err
	}
	if len(rec.seconds) < liveSettling+steps {
		return nil, fmt.Errorf("wrong result: %d steps of %d decodes, want %d", len(rec.seconds), requests, liveSettling+steps)
	}
	return rec, nil
}

// idle is a device that does nothing.
type idle struct{ steps int64 }

func (d *idle) Begin(*sim.Step) error        { return nil }
func (d *idle) Score(int, *sim.Work) error   { return nil }
func (d *idle) Move(*kv.Moves) error         { return nil }
func (d *idle) Compute(int, *sim.Work) error { return nil }
func (d *idle) Drain() (des.Time, error)     { return 0, nil }
func (d *idle) Finish() (sim.Timing, error) {
	d.steps++
	return sim.Timing{Elapsed: 1, SavesDone: 1, Landed: d.steps}, nil
}

// equalRequests is a workload of requests that all arrive at the start.
type equalRequests struct{ left, output int }

// Next implements sim.Workload.
func (w *equalRequests) Next() (sim.Arrival, bool, error) {
	w.left--
	return sim.Arrival{Prompt: livePrompt, Output: w.output}, w.left >= 0, nil
}

// hostTimes keeps the host's time of steps that decode all requests and nothing else.
type hostTimes struct {
	requests int
	seconds  []float64
	loads    []int64 // of the same steps
	loaded   int64   // by all
}

func (h *hostTimes) Request(*sim.Record) error { return nil }
func (h *hostTimes) Gap(des.Time)              {}
func (h *hostTimes) Step(r *sim.StepRecord) error {
	h.loaded += r.Loaded
	if r.Decodes == h.requests && r.Prefills == 0 {
		h.loads = append(h.loads, r.Loaded)
		h.seconds = append(h.seconds, max(r.Timing.Phases.Host.Seconds(), 1e-9))
	}
	return nil
}
