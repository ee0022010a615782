package papers

import (
	"errors"
	"fmt"
	"slices"

	"github.com/BurntSushi/toml"

	"github.com/sparseserve/sparseserve/experiments"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/traces"
)

// overlapSpec is what Fig. 8 measures.
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

// overlap replays the selections of one KV head of each request and counts the
// blocks that one of the last w steps selected too, as a share of the step's.
func (l *Studies) overlap(e *experiments.Experiment) error {
	var spec overlapSpec
	if err := decodeStudy(e.Name, &spec); err != nil {
		return err
	}
	preset, ok := config.PresetNamed(config.Presets(), spec.Preset)
	if !ok {
		return fmt.Errorf("preset = %q: no such system", spec.Preset)
	}
	system := &preset.Spec
	p := config.Point{Scores: traces.DefaultScores}
	l.alter(&p)
	lib := dsa.NewLibrary(traces.NewScores(p.Scores, run.ScoreSeed),
		dsa.TopK{K: sim.Candidates(system)}, dsa.Setting{Digest: dsa.CuboidMean, Sinks: system.SinkBlocks,
			Window: system.WindowBlocks}, run.StreamFamilies)
	t := run.NewTable("seed", "window", "requests", "overlap")
	for _, seed := range spec.Seeds {
		shares, requests, err := overlaps(&spec, system, lib, seed)
		if err != nil {
			return err
		}
		for i, window := range spec.Windows {
			t.Add(seed, window, requests, shares[i])
		}
	}
	return l.write(e, t)
}

// overlaps returns the mean overlap over the requests of one trace.
func overlaps(spec *overlapSpec, system *sim.Spec, lib *dsa.Library, seed uint64) (shares []float64,
	requests int, err error) {
	work := traces.DefaultSpec()
	work.Requests = spec.Workload.Requests
	stream, err := traces.Open(work, seed)
	if err != nil {
		return nil, 0, err
	}
	defer stream.Close()
	shares = make([]float64, len(spec.Windows))
	for {
		a, ok, err := stream.Next()
		if err != nil {
			return nil, 0, err
		}
		if !ok {
			break
		}
		requests++
		blocks := (min(a.Prompt, spec.MaxPromptTokens) + system.BlockTokens - 1) / system.BlockTokens
		fixed := system.SinkBlocks + system.WindowBlocks
		grid := lib.Grid(blocks - fixed)
		if grid < 0 { // every block is selected in every step
			for i := range shares {
				shares[i]++
			}
			continue
		}
		c := lib.CursorOf(seed, requests, 0, 0, 1)
		for i, s := range streamOverlap(lib.Cycle(c, grid), int(c.Phase), spec.Steps, fixed,
			spec.Windows) {
			shares[i] += s
		}
	}
	for i := range shares {
		shares[i] /= float64(requests)
	}
	return shares, requests, nil
}

// streamOverlap follows a stream from a phase on: what share of a step's blocks
// has been selected at most each window's steps before. The fixed blocks always
// have.
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

// decodeStudy reads the file of an experiment that serves no requests.
func decodeStudy(name string, into any) error {
	e, ok := experiments.Named(name)
	if !ok {
		return fmt.Errorf("no experiment %s", name)
	}
	meta, err := toml.Decode(e.Text, into)
	if err != nil {
		return err
	}
	if left := meta.Undecoded(); len(left) > 0 {
		return errors.New(left[0].String() + ": unknown key")
	}
	return nil
}
