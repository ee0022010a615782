package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/cost"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/sim/fleet"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/sim/score"
	"github.com/sparseserve/sparseserve/traces"
)

// ScoreSeed seeds the noise of the score process. It belongs to the process, not to a run: runs
// differ in the phase at which each request's groups enter the process.
const ScoreSeed = 1

// StreamFamilies is the number of realisations of the score process per context length. Every group
// of every request enters one of the realisations at its own phase. Making a stream costs as much
// as a short run; more families change mean TTFT and TBT by less than 1 %.
const StreamFamilies = 8

// Simulator runs points on modelled hardware. It caches the recorded selection streams, which all
// runs of a budget share. It is safe for concurrent use.
type Simulator struct {
	mu        sync.Mutex
	libraries map[libraryKey]*dsa.Library
}

// libraryKey identifies recorded streams by the parameters that they depend on.
type libraryKey struct {
	scores  score.Params
	policy  dsa.Policy
	setting dsa.Setting
}

// NewSimulator returns a simulator with no streams yet.
func NewSimulator() *Simulator { return &Simulator{libraries: map[libraryKey]*dsa.Library{}} }

// Run carries out one point. It is a Runner.
func (x *Simulator) Run(ctx context.Context, p config.Point, sink Sink) (metrics.Summary, error) {
	return x.RunOn(ctx, p, sink, func(d sim.Device) sim.Device {
		if sink.StepTime > 0 {
			return &paced{Device: d.(*cost.Device), factor: sink.StepTime}
		}
		return d
	})
}

// RunOn carries out one point on the device that wrap returns for the modelled device.
func (x *Simulator) RunOn(ctx context.Context, p config.Point, sink Sink,
	wrap func(sim.Device) sim.Device) (metrics.Summary, error) {
	s, err := x.prepare(&p)
	if err != nil {
		return metrics.Summary{}, err
	}
	defer s.close()
	var device *cost.Device // the last one made: all share their notes
	s.device = func() (sim.Device, error) {
		last := device
		var err error
		if device, err = s.newDevice(); err != nil {
			return nil, err
		}
		if last != nil {
			device.ShareNotes(last)
		}
		return wrap(device), nil
	}
	return s.serve(ctx, sink, func(m *metrics.Run) []warn.Warning {
		return slices.Concat(device.ExtrapolationNotes(m.Extrapolated()), s.crossovers(),
			hw.Doubts(p.GPU, p.System.Engine))
	})
}

// prepared is a point with all its inputs loaded. Its server has no device yet; each replica gets
// one from device.
type prepared struct {
	point  *config.Point
	model  llm.Model
	gpu    *hw.Profile
	stream *traces.Stream
	server sim.Config
	device func() (sim.Device, error) // nil: server has one

	selections *os.File // recorded, that the server replays; nil: none
	prefix     cost.PrefixOptions
	prices     *cost.PrefixPrices // of prefixes below HBM
	contexts   [][2]int           // of a live run's requests: tokens, from the prompt's to the last
}

func (s *prepared) close() {
	s.stream.Close()
	if s.selections != nil {
		s.selections.Close()
	}
}

// prepare loads the files that a point names. The caller closes it.
func (x *Simulator) prepare(p *config.Point) (*prepared, error) {
	h, err := p.Hardware()
	if err != nil {
		return nil, err
	}
	model, gpu := h.Shard, h.GPU
	plan, err := gpu.KVBudget(&model, p.System.Utilisation, p.System.MaxTokens,
		p.System.VerifiedRows())
	if err != nil {
		return nil, err
	}
	stream, err := traces.Open(p.Workload, p.Seed, traces.Tokenizer(model.Counter()))
	if err != nil {
		return nil, err
	}
	cfg := sim.Config{
		Spec: p.System,
		Model: sim.Model{Layers: model.Layers, KVHeads: model.KVHeads, Queries: apart(&model),
			TokenValues: model.TokenValues(),
			MaxContext:  model.MaxContext, BoundTokens: model.BoundTokens(),
			WindowLayers: model.WindowLayers()},
		Geometry: geometry(&model, &p.System),
		HBMBytes: h.KV,
		Seed:     p.Seed,
		Engine:   cost.Server(&gpu.EngineCosts),
		Measure: metrics.Measure{Cutoff: p.Metrics, CardBytes: plan.Size,
			FixedBytes: plan.Usable - plan.KV},
	}
	if cfg.Prefill, err = config.PrefillMix(&model, &p.System); err != nil {
		stream.Close()
		return nil, fmt.Errorf("prefill.pattern: %w", err)
	}
	cfg.RecallProxy = p.Output.RecallProxy && p.System.Sparse() && p.System.Selection.Recording == ""
	tp := float64(p.System.TensorParallel) // each GPU's share of the host:
	cfg.Spec.DRAMGiB /= tp
	cfg.Spec.PrefixCache.DRAMGiB /= tp
	cfg.Spec.PrefixCache.SSDGiB /= tp
	s := &prepared{point: p, model: model, gpu: gpu, stream: stream, server: cfg}
	if err := s.belowHBM(); err != nil {
		s.close()
		return nil, err
	}
	switch {
	case !p.System.Sparse():
	case p.System.Selection.Recording != "":
		if err := s.replay(p.System.Selection.Recording); err != nil {
			s.close()
			return nil, fmt.Errorf("selection.recording: %s: %w", p.System.Selection.Recording, err)
		}
	default:
		policy, named, err := p.System.Policy(cfg.Model.Queries)
		if err != nil {
			s.close()
			return nil, err
		}
		setting := dsa.Setting{Digest: named.Digest, Sinks: p.System.Selection.SinkBlocks,
			Window: p.System.Selection.RecentBlocks, Queries: 1}
		_, setting.Apart = policy.(dsa.Union)
		// other policies see the mean over the query heads of a KV head
		if setting.Apart || policy.Weighs() || cfg.RecallProxy {
			setting.Queries = model.QHeads / model.KVHeads
		}
		s.server.Library = x.library(libraryKey{p.Scores, policy, setting})
	}
	return s, nil
}

// apart returns the number of query heads of a KV head that may select separately. With latent
// attention an indexer selects for all heads.
func apart(m *llm.Model) int {
	if m.IsLatent() {
		return 1
	}
	return m.QHeads / m.KVHeads
}

// geometry returns the shape of the KV cache. If the server selects nothing, indexer keys are
// stored with the KV.
func geometry(m *llm.Model, s *sim.Spec) kv.Geometry {
	g := m.Geometry(s.BlockTokens)
	if m.IsIndexed() && !s.Sparse() {
		g.BlockBytes, g.MetaBytes = g.BlockBytes+g.MetaBytes, 0
	}
	return g
}

// replay makes the server use selections from a file.
func (s *prepared) replay(path string) (err error) {
	if s.selections, err = files.OpenRegular(path); err != nil {
		return errors.Unwrap(err) // the caller names the file
	}
	info, err := s.selections.Stat()
	if err != nil {
		return err
	}
	s.server.Recording, err = dsa.OpenRecording(s.selections, info.Size())
	return err
}

// serve runs the workload on the server's device and writes the outputs that the sink wants. notes
// returns warnings of the device.
func (s *prepared) serve(ctx context.Context, sink Sink, notes func(*metrics.Run) []warn.Warning) (
	sum metrics.Summary, err error) {
	iteration, err := cost.ReferenceIteration(s.gpu, &s.model)
	if err != nil {
		return metrics.Summary{}, err
	}
	slo := &s.point.SLO
	bounds := slo.Bounds(iteration.Seconds())
	if len(bounds) > 0 {
		s.server.Good = func(r *metrics.Request) bool { return config.Good(bounds, r) }
		s.server.LongWait = longWait(bounds)
	}
	runner, err := s.runner()
	if err != nil {
		return metrics.Summary{}, err
	}
	rec := NewOutputs(sink, &s.point.System, s.server.RecallProxy, s.point.Fleet.On())
	var recorder sim.Recorder = rec
	if sink.Trace != nil {
		scatter := s.point.System.Offload.On && s.point.System.Offload.Save == "flash"
		trace := newChromeTrace(sink.Trace, rec, scatter, max(1, s.point.Fleet.Replicas))
		defer func() {
			if e := trace.close(); err == nil { // else it is the same one
				err = e
			}
		}()
		recorder = trace
	}
	figures, runErr := runner.Run(ctx, s.stream, recorder)
	if figures == nil {
		return metrics.Summary{}, runErr
	}
	sum = figures.Summary()
	if sum.RecallProxy != nil {
		sum.RecallProxy.Accuracy = AccuracyProxy(sum.RecallProxy.Missed2)
		sum.Warnings = append(sum.Warnings, warn.New(warn.AccuracyProxy, "accuracy_proxy stands in for "+
			"accuracy: it follows from the attention that selections hold; no model ran and no answer was "+
			"scored"))
	}
	if ended := sum.Completed + sum.Rejected; slo.Rule == config.SLORequests && ended > 0 {
		share := figures.GoodShare()
		if len(bounds) == 0 {
			share = sum.ServedShare
		}
		sum.GoodShare = &share
	}
	sum.SLO = slo.String(bounds)
	sum.SLOMissed = slo.Missed(&sum, bounds)
	sum.SLOMet = new(len(sum.SLOMissed) == 0)
	if len(bounds) == 0 {
		sum.Warnings = append(sum.Warnings, warn.New(warn.NoBound,
			"the service level has no bound: only "+
				"rejected requests can miss it"))
	}
	sum.Warnings = append(sum.Warnings, notes(figures)...)
	sum.Warnings = append(sum.Warnings, s.stream.Warnings()...)
	if s.model.Note != "" {
		sum.Warnings = append(sum.Warnings, warn.New(warn.ModelNote, "%s: %s", s.model.Name,
			s.model.Note).About(s.model.Name))
	}
	if s.model.Tokenizer == "" && s.stream.Counts() {
		sum.Warnings = append(sum.Warnings, traces.GuessedTokenizer(s.model.Name, s.model.Counter()))
	}
	sum.Warnings = append(sum.Warnings, s.uncached()...)
	sum.Warnings = append(sum.Warnings, s.rebuiltIndex(&sum)...)
	if runErr != nil {
		endedEarly(ctx, &sum, runErr)
		return sum, runErr
	}
	return sum, rec.err
}

// longWait returns the longest wait for the first step that bounds on delay or TTFT allow; 0
// without such bounds.
func longWait(bounds []config.Bound) (limit float64) {
	for _, b := range bounds {
		if (b.Name == "delay" || b.Name == "ttft") && (limit == 0 || b.Limit < limit) {
			limit = b.Limit
		}
	}
	return limit
}

// runner returns the run of the server or fleet that serves the workload.
func (s *prepared) runner() (*sim.Shared, error) {
	if s.point.Fleet.On() {
		fleet, err := fleet.New(s.point.Fleet.Of(s.server, s.device))
		if err != nil {
			return nil, err
		}
		return fleet.Shared, nil
	}
	if s.device != nil {
		var err error
		if s.server.Device, err = s.device(); err != nil {
			return nil, err
		}
	}
	server, err := sim.NewServer(s.server)
	if err != nil {
		return nil, err
	}
	return server.Shared, nil
}

// endedEarly marks the summary of a run that an interrupt or an error ended.
func endedEarly(ctx context.Context, sum *metrics.Summary, err error) {
	sum.Interrupted = err.Error()
	if cause := ctx.Err(); cause != nil && errors.Is(err, cause) {
		sum.Interrupted = "interrupted"
	}
	sum.SLOMet, sum.SLOMissed = nil, nil // not known
	sum.Warnings = append(sum.Warnings, warn.New(warn.EndedEarly,
		"ended early: %s; figures cover the "+
			"%d requests that finished until then", sum.Interrupted, sum.Completed))
}

// library returns the streams of a selection algorithm.
func (x *Simulator) library(k libraryKey) *dsa.Library {
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.libraries[k]
	if l == nil {
		l = dsa.NewLibrary(score.New(k.scores, ScoreSeed), k.policy, k.setting, StreamFamilies)
		x.libraries[k] = l
	}
	return l
}

// DeviceOptions returns the options of the modelled device for a system.
func DeviceOptions(s *sim.Spec) cost.DeviceOptions {
	o := cost.DeviceOptions{TopP: s.Sampling == config.SamplingTopP, BlockTokens: s.BlockTokens}
	o.Pipelined = s.Progressive() && s.Selection.Pipelined
	if s.Offload.On {
		o.LoadEngine, o.SaveEngine, o.Offload = s.Offload.Load, s.Offload.Save, true
		o.GPULookup = s.GPULookup()
		o.HotSlots = s.Offload.HotBuffer
		o.SaveBufferBytes = int64(s.Offload.SaveBufferMiB * (1 << 20))
	}
	return o
}
