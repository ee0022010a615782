package calibrate

import (
	"math"
	"slices"

	"github.com/sparseserve/sparseserve/cuda"
)

// trainKey identifies a train. All its points have samples of the same rounds.
type trainKey struct {
	probe, shape string
	tokens       int64 // of a layer
}

// trainGroup is the start of a group of a train, in seconds of GPU work since the end of the rest
// (between two groups the GPU waits for their launch), and the time of one layer.
type trainGroup struct{ began, layer float64 }

// promptChunks is the number of chunks per timed prompt; promptsInARow is the number of consecutive
// prompts.
const (
	promptChunks  = 4
	promptsInARow = 2
)

// chunkOf counts the chunks before a point's chunk, in its prompt and in earlier prompts.
func chunkOf(p Point) int {
	return int((p.At("prompt")-1)*promptChunks + p.At("prefix_tokens")/p.At("tokens"))
}

// prepareTrain runs the point's train, unless it has run for another point.
func (g *gpuBench) prepareTrain(p Point) (Timed, error) {
	key := trainKey{p.Probe, p.Shape, p.At("tokens")}
	rounds, known := g.trains[key]
	if !known {
		if err := g.do(func(g *gpuRun) { rounds = g.runTrain(p) }); err != nil {
			return nil, err
		}
		g.trains[key] = rounds
	}
	return g.rounds(func(_ *gpuRun, i int) float64 { return rounds[i][trainAt(rounds[i], p)].layer }),
		nil
}

// trainAt finds the group of a point: a chunk by its index, linears by their start.
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
func (g *gpuRun) runTrain(p Point) [][]trainGroup {
	groups, layers := g.trainGroups(p)
	rest := g.restOf(p)
	rounds := make([][]trainGroup, clockRounds)
	for i := range rounds {
		g.runFor(rest, restedTime)
		began := 0.0
		for _, calls := range groups {
			t := g.once(calls)
			rounds[i] = append(rounds[i], trainGroup{began, t / float64(layers)})
			began += t
		}
	}
	return rounds
}

// trainGroups prepares the groups of a point's train and returns the layers per group.
func (g *gpuRun) trainGroups(p Point) (groups [][]cuda.Operation, layers int) {
	m, tokens := g.model(p.Shape), p.At("tokens")
	if p.Probe == probePrompt {
		for i := range int64(promptChunks) {
			calls := g.correct(g.chunkLayer(m, tokens, i*tokens))
			groups = append(groups, slices.Repeat(calls, m.Layers))
		}
		return slices.Repeat(groups, promptsInARow), m.Layers
	}
	group := g.pace(slices.Repeat(g.correct(g.linears(m, tokens)), clockLayers))
	n := 1
	if tokens == clockTokens {
		n += int(trainTime / max(group.each, 1))
	}
	return slices.Repeat([][]cuda.Operation{group.calls}, n), clockLayers
}
