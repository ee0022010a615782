package papers

import (
	"fmt"
	"slices"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/hw/cost"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/traces"
)

// transferSpec is the study.toml of Fig. 4.
type transferSpec struct {
	Model       string   `toml:"model"`
	GPU         string   `toml:"gpu"`
	BlockTokens []int    `toml:"block_tokens"`
	GiB         float64  `toml:"gib"` // moved by each call
	Loads       []string `toml:"loads"`
	Saves       []string `toml:"saves"`
}

// transfers times one call of each transfer engine at each block size, with all blocks of one layer
// and no other traffic.
func (l *Studies) transfers(spec *transferSpec, t *run.Table) error {
	model, err := llm.Load(spec.Model)
	if err != nil {
		return err
	}
	for _, d := range []struct {
		name    string
		engines []string
	}{{"load", spec.Loads}, {"save", spec.Saves}} {
		for _, engine := range d.engines {
			for _, tokens := range spec.BlockTokens {
				m := kv.Moves{BlockBytes: model.Geometry(tokens).BlockBytes}
				blocks := int64(spec.GiB*(1<<30)) / m.BlockBytes
				p := config.Point{Model: spec.Model, GPU: spec.GPU,
					System: sim.Spec{Engine: paperEngine, Offload: sim.OffloadSpec{On: true}}}
				if d.name == "load" {
					m.Loads, p.System.Offload.Load = blocks, engine
				} else {
					m.Saves, p.System.Offload.Save = blocks, engine
				}
				took, err := l.waits(p, &model, &m)
				if err != nil {
					return err
				}
				t.Add(d.name, engine, tokens, m.BlockBytes, blocks,
					float64(blocks*m.BlockBytes)/took.Seconds()/1e9)
			}
		}
	}
	return nil
}

// waits returns the time that a step stalls for its loads, from a pool of their size, and for its
// saves, none of which may stay queued.
func (l *Studies) waits(p config.Point, model *llm.Model, m *kv.Moves) (des.Time, error) {
	l.alter(&p)
	gpu, err := p.Machine()
	if err != nil {
		return 0, err
	}
	d, err := cost.NewDevice(gpu, model, run.DeviceOptions(&p.System))
	if err != nil {
		return 0, err
	}
	if err := d.Begin(&sim.Step{DRAMBytes: m.Loads * m.BlockBytes}); err != nil {
		return 0, err
	}
	if err := d.Move(m); err != nil {
		return 0, err
	}
	step, err := d.Finish()
	return step.Phases.LoadStall + step.Phases.SaveStall, err
}

// overlapSpec is the study.toml of Fig. 8.
type overlapSpec struct {
	Preset          string   `toml:"preset"`
	MaxPromptTokens int      `toml:"max_prompt_tokens"`
	Windows         []int    `toml:"windows"` // decode steps, ascending
	Steps           int      `toml:"steps"`   // of each request
	Seeds           []uint64 `toml:"seeds"`
	Workload        struct {
		Requests int `toml:"requests"`
	} `toml:"workload"`
}

// overlap replays the selections of one KV head of each request. It counts the blocks that were
// also selected in one of the last w steps, as a share of the step's blocks.
func (l *Studies) overlap(spec *overlapSpec, t *run.Table) error {
	preset, ok := config.PresetNamed(config.Presets(), spec.Preset)
	if !ok {
		return fmt.Errorf("preset = %q: no such system", spec.Preset)
	}
	system := &preset.Spec
	scores, _ := l.scores()
	lib := dsa.NewLibrary(scores, dsa.TopK{K: sim.Candidates(system)}, dsa.Setting{
		Digest: dsa.CuboidMean, Sinks: system.Selection.SinkBlocks,
		Window: system.Selection.RecentBlocks},
		run.StreamFamilies)
	work := traces.DefaultSpec()
	work.Requests = spec.Workload.Requests
	for _, seed := range spec.Seeds {
		prompts, err := promptLengths(work, seed)
		if err != nil {
			return err
		}
		sums := make([]float64, len(spec.Windows))
		for i, prompt := range prompts {
			cursor := lib.CursorOf(seed, i+1, 0, 0, 1)
			for j, share := range spec.shares(system, lib, cursor, prompt) {
				sums[j] += share
			}
		}
		for j, window := range spec.Windows {
			t.Add(seed, window, len(prompts), sums[j]/float64(len(prompts)))
		}
	}
	return nil
}

// shares returns the overlaps of one request, by window.
func (s *overlapSpec) shares(system *sim.Spec, lib *dsa.Library, c dsa.Cursor,
	prompt int) []float64 {
	blocks := (min(prompt, s.MaxPromptTokens) + system.BlockTokens - 1) / system.BlockTokens
	fixed := system.Selection.SinkBlocks + system.Selection.RecentBlocks
	grid := lib.Grid(blocks - fixed)
	if grid < 0 { // every block is selected in every step
		return slices.Repeat([]float64{1}, len(s.Windows))
	}
	return streamOverlap(lib.Cycle(c, grid), int(c.Phase), s.Steps, fixed, s.Windows)
}

// streamOverlap follows a stream from a phase on. For each window w it returns the share of a
// step's blocks that were selected in the last w steps. Fixed blocks always count as selected.
func streamOverlap(s *dsa.Cycle, phase, steps, fixed int, windows []int) []float64 {
	longest := slices.Max(windows)
	last := make([]int, s.Candidates) // the step that selected a block last, from 1
	hits, total := make([]int, len(windows)), 0
	for t := 1; t <= longest+steps; t++ {
		chosen := s.At((phase + t) % s.Steps).Next
		if t > longest {
			total += len(chosen) + fixed
			for i, w := range windows {
				hits[i] += fixed
				for _, b := range chosen {
					if last[b] > 0 && t-last[b] <= w {
						hits[i]++
					}
				}
			}
		}
		for _, b := range chosen {
			last[b] = t
		}
	}
	shares := make([]float64, len(windows))
	for i, h := range hits {
		shares[i] = float64(h) / float64(total)
	}
	return shares
}

// evictionSpec is the study.toml of the eviction study.
type evictionSpec struct {
	Run   []string  `toml:"run"` // key=value, over the default experiment
	Seeds []uint64  `toml:"seeds"`
	Pools []string  `toml:"pools"`  // offload.pool
	KVGiB []float64 `toml:"kv_gib"` // HBM for blocks
}

// optimumName is the name of Belady's optimum in the list of policies.
const optimumName = "belady"

// evictions records the selections of one run's decodes and replays them without timing under every
// eviction policy and Belady's optimum. All policies see the same accesses and capacity, unlike in
// separate runs. A size at which a policy cannot hold the blocks in use has no row.
func (l *Studies) evictions(spec *evictionSpec, t *run.Table) error {
	runs, err := config.Load("", append(slices.Clone(spec.Run), l.Sets...))
	if err != nil {
		return err
	}
	type combination struct {
		pool, eviction string
		gib            float64
	}
	var all []combination
	for _, pool := range spec.Pools {
		for _, eviction := range append(kv.EvictionNames(), optimumName) {
			for _, gib := range spec.KVGiB {
				all = append(all, combination{pool, eviction, gib})
			}
		}
	}
	x := run.NewSimulator()
	for _, seed := range spec.Seeds {
		p := runs[0]
		p.Seed = seed
		p.Name = config.PointName(&p)
		l.alter(&p)
		r, err := x.Record(l.ctx, p)
		if err != nil {
			return fmt.Errorf("seed %d: %w", seed, err)
		}
		err = addRows(l, t, all, func(c combination) ([]any, error) {
			stats, err := replay(r, c.eviction, c.pool == "per-layer", int64(c.gib*(1<<30)))
			if err != nil {
				return nil, nil // too small for the blocks in use at once
			}
			return []any{seed, c.pool, c.eviction, c.gib, r.Trace.Steps(), stats.Selected, stats.Loaded,
				1 - float64(stats.Loaded)/float64(stats.Selected)}, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// replay counts the loads of recorded selections under an eviction policy with a number of bytes of
// HBM for blocks.
func replay(r *run.Recorded, eviction string, perLayer bool, bytes int64) (kv.Stats, error) {
	if eviction == optimumName {
		return r.Trace.Optimum(bytes, perLayer)
	}
	cfg := &r.Server
	return r.Trace.Replay(kv.Config{HBMBytes: bytes, Eviction: eviction, PerLayer: perLayer, Window: 1,
		Score: sim.BlockScores(&cfg.Spec, cfg.Geometry, r.Trace.Sample.Groups, cfg.Library, cfg.Seed)})
}
