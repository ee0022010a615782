package calibrate

import (
	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/hw"
	"math"
	"slices"
)

// trainKey is what a train is made from: all points of it have their samples of the
// same rounds.
type trainKey struct {
	probe, shape string
	tokens       int64 // of a layer
}

// trainGroup is when a group of a train began, in seconds of the GPU's work since the
// rest's end (between two groups it waits for their launch), and how long one of its
// layers took.
type trainGroup struct{ began, layer float64 }

// promptChunks are those of a prompt whose chunks are timed, and promptsInARow as many
// prompts as come one behind another.
const (
	promptChunks  = 4
	promptsInARow = 2
)

// chunkOf counts the chunks before a point's, of its prompt and of those before.
func chunkOf(p Point) int {
	return int((p.At("prompt")-1)*promptChunks + p.At("prefix_tokens")/p.At("tokens"))
}

// prepareTrain runs the point's train, unless it has run for another point.
func (g *gpuBench) prepareTrain(m *hw.Model, p Point) (Timed, error) {
	key := trainKey{p.Probe, p.Shape, p.Axes[0].Value} // each request of a decode has one
	rounds, known := g.trains[key]
	if !known {
		err := g.lib.Do(func(s *cuda.Session) (err error) {
			rounds, err = g.runTrain(s, m, p)
			return err
		})
		if err != nil {
			return nil, err
		}
		g.trains[key] = rounds
	}
	i := -1
	return g.rounds(func(*cuda.Session) (float64, error) {
		i++
		return rounds[i][trainAt(rounds[i], p)].layer, nil
	}), nil
}

// trainAt finds the group of a point: a chunk by those before it, linears and decodes by
// when they began.
func trainAt(groups []trainGroup, p Point) int {
	if p.Probe == probePrompt {
		return chunkOf(p)
	}
	nearest, after := 0, 1e-3*float64(p.At("after_ms"))
	for i, at := range groups {
		if math.Abs(at.began-after) < math.Abs(groups[nearest].began-after) {
			nearest = i
		}
	}
	return nearest
}

// runTrain rests and runs a train of groups, clockRounds times.
func (g *gpuBench) runTrain(s *cuda.Session, m *hw.Model, p Point) ([][]trainGroup, error) {
	var groups [][]cuda.Operation
	layers := clockLayers
	switch p.Probe {
	case probePrompt:
		layers = m.Layers
		for i := range int64(promptChunks) {
			calls, err := g.checked(s, func() ([]cuda.Operation, func(*cuda.Session) error, error) {
				return g.layerOp(s, m, p.At("tokens"), i*p.At("tokens"))
			})
			if err != nil {
				return nil, err
			}
			groups = append(groups, slices.Repeat(calls, layers))
		}
		groups = slices.Repeat(groups, promptsInARow)
	default:
		calls, err := g.checked(s, func() ([]cuda.Operation, func(*cuda.Session) error, error) { return g.linearsOp(s, m, p.At("tokens")) })
		if err != nil {
			return nil, err
		}
		group := paced{calls: slices.Repeat(calls, layers)}
		if err := group.measure(s); err != nil {
			return nil, err
		}
		n := 1
		if p.At("tokens") == clockTokens {
			n += int(trainTime / group.each)
		}
		groups = slices.Repeat([][]cuda.Operation{group.calls}, n)
	}
	rest, err := g.restOf(s, p)
	if err != nil {
		return nil, err
	}
	rounds := make([][]trainGroup, clockRounds)
	for i := range rounds {
		if err := rest.run(s, restedTime); err != nil {
			return nil, err
		}
		began := 0.0
		for _, calls := range groups {
			t, err := s.Bench(cuda.Bench{Calls: calls, Repeats: 1})
			if err != nil {
				return nil, err
			}
			rounds[i] = append(rounds[i], trainGroup{began, t[0] * 1e-3 / float64(layers)})
			began += t[0] * 1e-3
		}
	}
	return rounds, nil
}
