package run

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/sparseserve/sparseserve/cuda/live"
	"github.com/sparseserve/sparseserve/cuda/weights"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/hw/cost"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/traces"
)

// Live runs points on a real device: the same trace, scheduler and cache as Simulator, with
// measured time. All heads are served. It runs one point at a time.
type Live struct {
	Simulator *Simulator
	// On runs f on the thread that the machine requires.
	On func(f func(live.Machine) error) error
	// Weights is a folder of safetensors with its config.json; empty draws random weights.
	Weights string
	// SplitEvery splits every n-th step into phases; 0 splits none.
	SplitEvery int64
	// Selects makes sparse attention read the blocks that the model's own metadata selects.
	Selects bool
	// Record is the file for the selections of every decode; empty: none.
	Record string
	// Pace waits in real time through gaps in which no request runs.
	Pace bool
	// HostBytes is the available host memory; 0: unknown.
	HostBytes int64
	// Pinned keeps pinned memory between runs; nil keeps none. All machines must be the same one.
	Pinned *live.Pinned
	// Did receives the counters of the device after a run; it may be nil.
	Did func(config.Point, live.Counters)
}

// Run carries out one point. It is a Runner.
func (l *Live) Run(ctx context.Context, p config.Point, sink Sink) (metrics.Summary, error) {
	return l.run(ctx, p, sink, nil)
}

// Shadowed is Run that also records the calls of each step to the device.
func (l *Live) Shadowed(ctx context.Context, p config.Point, sink Sink) (metrics.Summary,
	[]live.RecordedStep, error) {
	var shadow live.CallRecorder
	sum, err := l.run(ctx, p, sink, func(d sim.Device) sim.Device {
		shadow.Real = d
		return &shadow
	})
	return sum, shadow.Steps, err
}

// Device names the machine.
func (l *Live) Device() (name string, err error) {
	err = l.On(func(m live.Machine) error {
		info, err := m.Device()
		name = info.Name
		return err
	})
	return name, err
}

// Options describes the run options that are not in the configuration.
func (l *Live) Options() string {
	return fmt.Sprintf("split=%d selects=%t pace=%t weights=%q", l.SplitEvery, l.Selects,
		l.Pace, l.Weights)
}

// run carries out one point on the device returned by wrap, or on the device itself if wrap is nil.
func (l *Live) run(ctx context.Context, p config.Point, sink Sink,
	wrap func(sim.Device) sim.Device) (sum metrics.Summary, err error) {
	p.System.Simulation.Heads = "full"
	if err := checkLive(&p); err != nil {
		return sum, err
	}
	s, err := l.Simulator.prepare(&p)
	if err != nil {
		return metrics.Summary{}, err
	}
	defer s.close()
	if class := noKernel(&s.model); class != "" {
		return sum, refuse("model", p.Model,
			"has "+class+", which no kernel here computes; simulate it without --live")
	}
	if err := s.checkGrid(); err != nil {
		return metrics.Summary{}, err
	}
	latent := s.model.IsLatent()
	if latent && wrap != nil {
		return sum, refuse("model", p.Model, "selects tokens live, and its recorded steps have no "+
			"price: simulate --live runs it, validate does not")
	}
	if latent {
		if err := l.checkLatent(&p.System, s.model.IndexTopK); err != nil {
			return sum, err
		}
	}
	if wrap == nil {
		wrap = func(d sim.Device) sim.Device { return d }
	}
	source, err := l.source(&s.model, p.Seed)
	if err != nil {
		return metrics.Summary{}, err
	}
	load, err := s.load()
	if err != nil {
		return metrics.Summary{}, err
	}
	selects := latent || l.selects(&p.System)
	if !selects {
		s.makeSelections()
	}
	err = l.On(func(m live.Machine) (err error) {
		if l.Pinned != nil {
			m = l.Pinned.On(m)
		}
		cfg := live.Config{
			Spec: &s.point.System, Geometry: s.server.Geometry, Weights: source,
			KVBytes: s.server.HBMBytes, Seed: p.Seed, SplitEvery: l.SplitEvery,
			Selects: selects, SaveThreads: cost.ScatterThreads,
			Patterns: s.server.Prefill.Heads(s.model.Layers, s.model.QHeads), FindsLines: l.Selects,
		}
		if len(load.Requests) > 0 {
			cfg.Longest = load.Requests[0]
		}
		if err := live.Fits(m, cfg, load, l.HostBytes); err != nil {
			return err
		}
		device, err := live.New(m, cfg)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, device.Close()) }()
		s.server.Device, s.server.Addressed = wrap(device), true
		s.server.Engine = sim.Engine{LoadsInTurn: true} // times are the live loop's own
		if s.server.DeviceSelects = selects; latent {
			s.server.Swapped = device.Swapped
		}
		if l.Pace {
			s.server.Idle = func(gap des.Time) error { device.Idle(ctx, gap); return nil }
		}
		sum, err = l.serve(ctx, s, sink)
		sum.Lived(liveStats(device.Counters(), latent))
		if err == nil && l.Did != nil {
			l.Did(p, device.Counters())
		}
		return err
	})
	if c, ok := source.(interface{ Close() error }); ok {
		err = errors.Join(err, c.Close())
	}
	return sum, err
}

// refuse returns the error of a key that a live run cannot carry out.
func refuse(key string, value any, reason string) error {
	return &config.KeyError{Key: key, Value: config.Show(value), Reason: reason}
}

// checkLive refuses settings that are simulated only.
func checkLive(p *config.Point) error {
	s := &p.System
	head, patterned := s.PrefillHead()
	switch {
	case p.Fleet.On():
		return refuse("fleet.replicas", p.Fleet.Replicas,
			"a live run has one server, which stays up; leave [fleet] out")
	case p.Workload.PrefixHit > 0:
		return refuse("workload.prefix_hit", p.Workload.PrefixHit, "a live run finds hits by content "+
			"alone: workload.trace = \"sessions\" or a trace with content, and prefix_cache.mode")
	case s.PrefixCache.Attend == sim.PrefixSelected:
		return refuse("prefix_cache.attend", s.PrefixCache.Attend, "is simulated and has no kernel; a "+
			"live run's prefills attend to all of a prefix: \"dense\"")
	case s.PrefixTiers():
		return refuse("prefix_cache.dram_gib", s.PrefixCache.DRAMGiB, "a live run caches prefixes in "+
			"HBM, or in DRAM with offload.on = true; leave it and prefix_cache.ssd_gib out")
	case patterned && !slices.Contains(live.PatternKinds, head.Kind):
		return refuse("prefill.attention", s.Prefill.Attention, "is simulated and has no kernel; a live "+
			"run has dense, minference, a-shape, vertical-slash and block-sparse")
	case s.TensorParallel > 1:
		return refuse("system.tensor_parallel", s.TensorParallel,
			"a live run has one GPU; leave it out")
	case s.Speculation.Tokens > 0:
		return refuse("speculation.tokens", s.Speculation.Tokens,
			"is simulated and has no kernel; leave it out")
	}
	return nil
}

// checkGrid returns an error if the engine's price assumes another padding of linears than the live
// server has.
func (s *prepared) checkGrid() error {
	if grid := s.gpu.LinearGrid; grid > 1 && grid != live.LinearGrid {
		return refuse("system.engine", s.point.System.Engine, fmt.Sprintf("pads linears to %d "+
			"tokens, a live run to %d: give the engine linear_grid = %[2]d", grid, live.LinearGrid))
	}
	return nil
}

func (l *Live) selects(s *sim.Spec) bool { return l.Selects && s.Sparse() }

// serve runs the workload, and records selections if requested. A run that ends early leaves a
// recording of the finished requests.
func (l *Live) serve(ctx context.Context, s *prepared, sink Sink) (sum metrics.Summary, err error) {
	notes := func(*metrics.Run) []warn.Warning { return nil }
	if l.Record == "" {
		return s.serve(ctx, sink, notes)
	}
	file, err := files.Create(l.Record)
	if err != nil {
		return sum, err
	}
	defer file.Cleanup()
	s.server.RecordTo = dsa.NewRecordingWriter(file, s.server.SelectionShape())
	if sum, err = s.serve(ctx, sink, notes); sum.Completed == 0 {
		return sum, err
	}
	return sum, errors.Join(err, s.server.RecordTo.Close(), file.CloseAtomicallyReplace())
}

// load summarizes the workload's requests as the server accepts them.
func (s *prepared) load() (live.Load, error) {
	var load live.Load
	var tokens []int
	for a, err := range traces.Requests(s.point.Workload, s.point.Seed,
		traces.Tokenizer(s.model.Counter())) {
		if err != nil {
			return load, err
		}
		limit := s.model.MaxContext - a.Output
		if most := s.point.System.Prefill.MaxPromptTokens; most > 0 {
			limit = min(limit, most)
		}
		if limit < 1 || a.Prompt > limit && s.point.System.Prefill.OverLength != "truncate" {
			continue // the server rejects it
		}
		prompt := min(a.Prompt, limit)
		load.Prompt = max(load.Prompt, prompt)
		tokens = append(tokens, prompt+a.Output)
		s.contexts = append(s.contexts, [2]int{prompt, prompt + a.Output})
	}
	slices.SortFunc(tokens, func(a, b int) int { return b - a })
	load.Requests = tokens
	return load, nil
}

// makeSelections generates all selections before the first step, because a real server's GPU
// selects without this cost. For PSA with heads that end together, selections are generated within
// the steps.
func (s *prepared) makeSelections() {
	lib, spec := s.server.Library, &s.point.System
	if lib == nil {
		return
	}
	for _, c := range s.contexts {
		kept := spec.Selection.SinkBlocks + spec.Selection.RecentBlocks
		lib.Make(s.server.Geometry.Blocks(c[0])-kept, s.server.Geometry.Blocks(c[1])-kept, onAllCores)
	}
}

// onAllCores calls f for 0 to n-1, in parallel.
func onAllCores(n int, f func(i int)) {
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range n {
		g.Go(func() error { f(i); return nil })
	}
	_ = g.Wait() // no error
}

// liveStats converts counters to a summary's statistics. With latent attention they count rows.
func liveStats(c live.Counters, latent bool) metrics.LiveStats {
	if latent {
		return metrics.LiveStats{RowsSelected: c.Selected, RowsLoaded: c.Loaded, RowsSaved: c.Saved,
			GrowingS: c.Growing.Seconds()}
	}
	s := metrics.LiveStats{
		BlocksLoaded: c.Loaded, BlocksSaved: c.Saved, Rounds: c.Rounds, BlocksAhead: c.Ahead,
		RoundTrips: c.RoundTrips, RoundTripS: c.Waiting.Seconds(), LookupS: c.Lookup.Seconds(),
		ListsS: c.Lists.Seconds(), PlanningS: c.Planning.Seconds(), SaveWaitS: c.Saving.Seconds(),
		GrowingS: c.Growing.Seconds(),
	}
	if c.Steps > 0 {
		s.RoundTripsPerStep = float64(c.RoundTrips) / float64(c.Steps)
		s.BookkeepingMSPerStep = 1e3 * (s.LookupS + s.ListsS) / float64(c.Steps)
	}
	if c.Layers > 0 {
		layers := float64(c.Layers)
		s.UploadsPerLayer, s.UploadKiBPerLayer, s.CallsPerLayer = float64(c.Uploads)/layers,
			float64(c.UploadBytes)/1024/layers, float64(c.Calls)/layers
	}
	if c.Elapsed > 0 {
		s.BookkeepingShare = (s.LookupS + s.ListsS) / c.Elapsed.Seconds()
	}
	return s
}

// source returns the weights of a model.
func (l *Live) source(m *llm.Model, seed uint64) (weights.Source, error) {
	shape := weights.Config{Model: *m}
	if m.IsLatent() { // the epsilon and the rotary base of DeepSeek-V3's config.json
		shape.Eps, shape.Rope = 1e-6, weights.Rope{Theta: 10000}
	}
	if m.QKVBias {
		return nil, fmt.Errorf("%s has biases in its attention; live execution runs Llama-architecture "+
			"models, which have none", m.Name)
	}
	if l.Weights == "" {
		return weights.NewRandom(shape, seed)
	}
	folder, err := weights.Open(l.Weights)
	if err != nil {
		return nil, err
	}
	got := folder.Config()
	if got.Layers != shape.Layers || got.Hidden != shape.Hidden || got.QHeads != shape.QHeads ||
		got.KVHeads != shape.KVHeads || got.FFN != shape.FFN || got.Vocab != shape.Vocab {
		return nil, errors.Join(fmt.Errorf("%s: these weights do not belong to model %s; set model to "+
			"the same folder", l.Weights, m.Name), folder.Close())
	}
	return folder, nil
}
