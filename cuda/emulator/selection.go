package emulator

import (
	"math"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/reference"
)

func digest(m *access, d *cuda.DigestArgs) {
	m.need(d.HeadDim == 64 || d.HeadDim == 128, "64 or 128 values a head")
	dim, tokens := int(d.HeadDim), int(d.BlockTokens)
	slots, places := view[int32](m, "Slot", d.Slot, 0, int(d.Count)), view[int64](m, "Dst", d.Dst,
		0, int(d.Count))
	for i, slot := range slots {
		keys := m.tensor("Pool", d.Pool, 2*int(slot)*tokens*dim, tokens*dim)
		hi, lo := reference.Digest(keys, dim)
		store(m.halves("Meta", d.Meta, 2*int(places[i])*dim, 2*dim), append(hi, lo...))
	}
}

func checkScores(m *access, s *cuda.ScoresArgs) {
	m.heads(s.HeadsQ, s.HeadsKV, s.HeadDim)
	m.need(s.Batch > 0 && int64(s.Batch)*int64(s.HeadsKV) <= 65535, "1 to 65535 units")
}

func scores(m *access, s *cuda.ScoresArgs) {
	if checkScores(m, s); s.MaxBlocks == 0 {
		return
	}
	for unit := range int(s.Batch * s.HeadsKV) {
		scoreUnit(m, s, unit, math.MaxInt)
	}
}

// scoreUnit writes the scores of a unit's digests, at most `most`, and returns them.
func scoreUnit(m *access, s *cuda.ScoresArgs, unit, most int) []float32 {
	count := int(*at[int32](m, "Count", s.Count, unit))
	if count < 0 || count > int(s.MaxBlocks) || count > int(s.ScoreStride) {
		m.fault("Count", s.Count, 4,
			"unit %d has %d digests; MaxBlocks is %d, a row of scores holds %d",
			unit, count, s.MaxBlocks, s.ScoreStride)
	}
	count = min(count, most)
	if count == 0 {
		return nil
	}
	dim, rows := int(s.HeadDim), int(s.HeadsQ/s.HeadsKV)*int(s.HeadDim)
	q := m.tensor("Q", s.Q, unit*rows, rows)
	first := int(*at[int64](m, "First", s.First, unit))
	meta := m.tensor("Meta", s.Meta, 2*first*dim, count*2*dim)
	scores := view[float32](m, "Scores", s.Scores, unit*int(s.ScoreStride), count)
	for i := range scores {
		digest := meta[i*2*dim:][:2*dim]
		scores[i] = float32(reference.Score(q, digest[:dim], digest[dim:]))
	}
	return scores
}

func checkTopK(m *access, t *cuda.TopKArgs) {
	m.need(t.Units > 0, "units > 0")
	m.need(t.K >= 0 && t.K <= cuda.TopKMax && t.K <= t.ListStride,
		"k of at most TopKMax and list_stride")
	m.need(t.Sink >= 0 && t.Window >= 0, "sink and window >= 0")
}

func topK(m *access, t *cuda.TopKArgs) {
	checkTopK(m, t)
	for unit := range int(t.Units) {
		n := blocksOf(m, t, unit, int(t.ScoreStride))
		choose(m, t, unit, n, func(i int) float32 {
			return *at[float32](m, "Scores", t.Scores, unit*int(t.ScoreStride)+i)
		})
	}
}

func blocksOf(m *access, t *cuda.TopKArgs, unit, most int) int {
	n := int(*at[int32](m, "Blocks", t.Blocks, unit))
	if n < 0 || n > most {
		m.fault("Blocks", t.Blocks, 4, "unit %d has %d blocks; a row of scores holds %d", unit, n,
			most)
	}
	return n
}

// choose writes a unit's list. It does not read scores of sinks and of the window.
func choose(m *access, t *cuda.TopKArgs, unit, n int, score func(i int) float32) {
	scores := make([]float64, n)
	for i := range scores {
		if i < int(t.Sink) || i >= n-int(t.Window) {
			continue
		}
		if scores[i] = float64(score(i)); math.IsNaN(scores[i]) {
			m.fault("Scores", t.Scores, 4, "score %d of unit %d is NaN", i, unit)
		}
	}
	chosen := reference.TopK(scores, int(t.K), int(t.Sink), int(t.Window))
	copy(view[int32](m, "List", t.List, unit*int(t.ListStride), len(chosen)), chosen)
	*at[int32](m, "TopK.Count", t.Count, unit) = int32(len(chosen))
}

func selectBlocks(m *access, s *cuda.SelectArgs) {
	checkScores(m, &s.Scores)
	checkTopK(m, &s.TopK)
	m.need(s.TopK.Units == s.Scores.Batch*s.Scores.HeadsKV,
		"the same units to score and to choose for")
	bytes := int64(s.TopK.Units) * 4
	m.zeroed("Arrived", s.Arrived, bytes, bytes)
	for unit := range int(s.TopK.Units) {
		n := blocksOf(m, &s.TopK, unit, int(s.Scores.ScoreStride))
		scores := scoreUnit(m, &s.Scores, unit, n)
		choose(m, &s.TopK, unit, n, func(i int) float32 {
			if i < len(scores) {
				return scores[i]
			}
			return float32(math.Inf(-1)) // no digest yet
		})
	}
}
