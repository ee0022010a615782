package validate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/sparseserve/sparseserve/cuda/live"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/sim/pattern"
)

// storedStep is one step of a live run in callsFile, one line of JSON per step: the calls to the
// device and their time, so that any hardware profile can be compared on the same batches. Times
// are in nanoseconds.
type storedStep struct {
	Index    int64    `json:"index"`
	Start    des.Time `json:"start"`
	Elapsed  des.Time `json:"elapsed"`
	Requests int      `json:"requests"`
	Sampled  int      `json:"sampled"`
	DRAM     int64    `json:"dram"`
	Block    int64    `json:"block,omitempty"` // bytes of a block
	// Phases is empty for a step that the device did not split.
	Phases *metrics.Phases `json:"phases,omitempty"`
	Works  []storedWork    `json:"works"`
	// Layers has one row per layer: layer, index in Works, scored (0 or 1), moved (0, 1, or with
	// landing 3), loads, saves. Old runs have up to three more numbers, which are not read. Loads of
	// roundLoads stand for the sum over the rounds of the work.
	Layers [][]int64 `json:"layers"`
	// Prefix is Moves.Prefix per layer; empty if the step loads no prefix. Old runs do not record it.
	Prefix []int64 `json:"prefix,omitempty"`
	// Joined is Moves.Joined, stored like Prefix.
	Joined []int64 `json:"joined,omitempty"`
}

type storedWork struct {
	Tokens       int      `json:"tokens"`
	Prefill      [][2]int `json:"prefill,omitempty"` // query and prefix, a pair a request
	Decodes      int      `json:"decodes,omitempty"`
	DecodeTokens int64    `json:"decode_tokens,omitempty"` // left out where rounds have them
	// RereadTokens is 0 in old runs, which do not record it.
	RereadTokens int64 `json:"reread_tokens,omitempty"`
	ScoredBlocks int64 `json:"scored_blocks,omitempty"`
	Sparse       bool  `json:"sparse,omitempty"`
	// Rounds of progressive attention are pairs of tokens and loads.
	Rounds [][2]int64 `json:"rounds,omitempty"`
	// Patterns are the patterns of sparse prefill; empty for dense prefill.
	Patterns []storedPattern `json:"patterns,omitempty"`
}

type storedPattern struct {
	Kind  pattern.Kind `json:"kind"`
	Sizes [2]int       `json:"sizes"`
	Heads float64      `json:"heads"`
}

// inRounds returns the sums over the rounds.
func (w *storedWork) inRounds() (tokens, loads int64) {
	for _, r := range w.Rounds {
		tokens, loads = tokens+r[0], loads+r[1]
	}
	return tokens, loads
}

// roundLoads marks a layer whose loads are the sum over the rounds of its work.
const roundLoads = -1

// landing is the bit of moved for Moves.SavesInFlight. Old runs do not record it.
const landing = 2

// marshalCalls writes the steps of a live run.
func marshalCalls(steps []live.RecordedStep) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	for i := range steps {
		s := &steps[i]
		line := storedStep{
			Index: s.Step.Index, Start: s.Step.Start, Elapsed: s.Timing.Elapsed, Requests: s.Step.Requests,
			Sampled: s.Step.Sampled, DRAM: s.Step.DRAMBytes,
		}
		if s.Timing.Phases != (metrics.Phases{Unsplit: s.Timing.Elapsed}) {
			line.Phases = &s.Timing.Phases
		}
		for j := range s.Works {
			w := &s.Works[j]
			sw := storedWork{Tokens: w.Tokens, Decodes: w.Decodes, DecodeTokens: w.DecodeTokens,
				RereadTokens: w.RereadTokens, ScoredBlocks: w.ScoredBlocks, Sparse: w.Sparse}
			for _, span := range w.Prefill {
				sw.Prefill = append(sw.Prefill, [2]int{span.Query, span.Prefix})
			}
			for _, r := range w.Rounds {
				sw.Rounds = append(sw.Rounds, [2]int64{r.Tokens, r.Loads})
			}
			for _, g := range w.Patterns {
				sw.Patterns = append(sw.Patterns, storedPattern{g.Kind, [2]int{g.A, g.B}, g.Heads})
			}
			if tokens, _ := sw.inRounds(); tokens == sw.DecodeTokens {
				sw.DecodeTokens = 0
			}
			line.Works = append(line.Works, sw)
		}
		for j := range s.Layers {
			l := &s.Layers[j]
			stored := []int64{int64(l.Layer), int64(l.Work), bit(l.Scored),
				bit(l.Moved) | landing*bit(l.Moves.SavesInFlight), l.Moves.Loads, l.Moves.Saves}
			if _, loads := line.Works[l.Work].inRounds(); loads > 0 && loads == l.Moves.Loads {
				stored[4] = roundLoads
			}
			line.Layers = append(line.Layers, stored)
			line.Prefix = append(line.Prefix, l.Moves.Prefix)
			line.Joined = append(line.Joined, l.Moves.Joined)
			line.Block = max(line.Block, l.Moves.BlockBytes)
		}
		line.Prefix, line.Joined = unlessZero(line.Prefix), unlessZero(line.Joined)
		if err := enc.Encode(&line); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// unmarshalCalls reads what marshalCalls wrote.
func unmarshalCalls(text []byte) ([]live.RecordedStep, error) {
	var steps []live.RecordedStep
	for dec := json.NewDecoder(bytes.NewReader(text)); ; {
		var line storedStep
		if err := dec.Decode(&line); err == io.EOF {
			return steps, nil
		} else if err != nil {
			return nil, fmt.Errorf("step %d: %s", len(steps), files.JSONWords(err))
		}
		s := live.RecordedStep{
			Step: sim.Step{Index: line.Index, Start: line.Start, Requests: line.Requests,
				Sampled: line.Sampled, DRAMBytes: line.DRAM},
			Timing: metrics.Timing{Elapsed: line.Elapsed, Phases: metrics.Phases{Unsplit: line.Elapsed}},
		}
		if line.Phases != nil {
			s.Timing.Phases = *line.Phases
		}
		for _, sw := range line.Works {
			w := sim.Work{Tokens: sw.Tokens, Decodes: sw.Decodes, DecodeTokens: sw.DecodeTokens,
				RereadTokens: sw.RereadTokens, ScoredBlocks: sw.ScoredBlocks, Sparse: sw.Sparse}
			for _, span := range sw.Prefill {
				w.Prefill = append(w.Prefill, sim.Span{Query: span[0], Prefix: span[1]})
			}
			if w.DecodeTokens == 0 {
				w.DecodeTokens, _ = sw.inRounds()
			}
			for _, r := range sw.Rounds {
				w.Rounds = append(w.Rounds, sim.Round{Tokens: r[0], Loads: r[1]})
			}
			for _, g := range sw.Patterns {
				head := pattern.Head{Kind: g.Kind, A: g.Sizes[0], B: g.Sizes[1]}
				w.Patterns = append(w.Patterns, pattern.Group{Head: head, Heads: g.Heads})
			}
			s.Works = append(s.Works, w)
		}
		for _, n := range []int{len(line.Prefix), len(line.Joined)} {
			if n != 0 && n != len(line.Layers) {
				return nil, fmt.Errorf("step %d: prefix or joined has %d numbers for %d layers", line.Index,
					n, len(line.Layers))
			}
		}
		for i, l := range line.Layers {
			if len(l) < 6 || len(l) > 9 {
				return nil, fmt.Errorf("step %d: a layer has %d numbers, want 6 to 9", line.Index, len(l))
			}
			if l[1] < 0 || l[1] >= int64(len(s.Works)) {
				return nil, fmt.Errorf("step %d: layer %d has work %d of %d", line.Index, l[0], l[1],
					len(s.Works))
			}
			if l[4] == roundLoads {
				_, l[4] = line.Works[l[1]].inRounds()
			}
			m := kv.Moves{Layer: int(l[0]), Loads: l[4], Saves: l[5], BlockBytes: line.Block,
				InRounds: len(s.Works[l[1]].Rounds) > 0, SavesInFlight: l[3]&landing != 0}
			if len(line.Prefix) > 0 {
				m.Prefix = line.Prefix[i]
			}
			if len(line.Joined) > 0 {
				m.Joined = line.Joined[i]
			}
			s.Layers = append(s.Layers, live.RecordedLayer{Layer: int(l[0]), Work: int(l[1]),
				Scored: l[2] != 0, Moved: l[3]&1 != 0, Moves: m})
		}
		steps = append(steps, s)
	}
}

// unlessZero returns nil for numbers that are all zero.
func unlessZero(blocks []int64) []int64 {
	if slices.ContainsFunc(blocks, func(n int64) bool { return n != 0 }) {
		return blocks
	}
	return nil
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
