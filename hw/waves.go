package hw

import "math"

// DecodeWaves is how the decode kernel launches lists of selected blocks
// (cuda/decode.cu): each is cut into as many CTAs as make
//
//	waves x (blocks of a CTA + 4)
//
// least, with so many CTAs at once on the card.
type DecodeWaves struct {
	Splits float64 // CTAs of a list
	Waves  float64
	Last   float64 // CTAs of the last wave
	Blocks float64 // of a CTA, the longest
}

// Constants of the kernel's choice: what a CTA's beginning and end cost, in blocks,
// and into how many parts it cuts a list at most.
const (
	cutFixed = 4
	cutMost  = 64
)

// DecodeWavesOf cuts some lists of so many tokens.
func DecodeWavesOf(ctas, lists, tokens float64) DecodeWaves {
	blocks := math.Ceil(tokens / cutTokens)
	of := func(splits float64) DecodeWaves {
		waves := math.Ceil(lists * splits / ctas)
		return DecodeWaves{splits, waves, lists*splits - (waves-1)*ctas, math.Ceil(blocks / splits)}
	}
	if ctas == 0 {
		return DecodeWaves{Splits: 1, Waves: 1, Last: lists, Blocks: blocks}
	}
	best := of(1)
	for splits := 2.0; splits <= cutMost && splits <= math.Ceil(blocks/cutWarps); splits++ {
		if w := of(splits); w.Waves*(w.Blocks+cutFixed) < best.Waves*(best.Blocks+cutFixed) {
			best = w
		}
	}
	return best
}

// Seconds returns what comes on top of a launch and the lists' bytes:
//
//	[splits > 1] (cut + [waves > 1] join) + (waves-1) wave + [waves > 1] max(0, full - last) blocks each
//
// Parts of a list meet in memory; between two waves, and beside a last one of few
// CTAs, less is read than HBM could give. each is the time of a block at full rate.
func (w *DecodeWaves) Seconds(cut, join, wave, full, each float64) float64 {
	t := (w.Waves - 1) * wave
	if w.Splits > 1 {
		t += cut
		if w.Waves > 1 {
			t += join
		}
	}
	if w.Waves > 1 {
		t += math.Max(0, full-w.Last) * w.Blocks * each
	}
	return t
}
