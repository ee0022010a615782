package dsa

import "math"

// Policy says which blocks to attend to: head by head (ByHead) or for all heads of a layer
// together (ByLayer).
type Policy interface {
	// Limit is the number of candidates up to which all are picked whatever their scores.
	Limit() int
	// AtOnce is the most of so many candidates that must be in HBM at one time.
	AtOnce(candidates int) int
	// Weighs says whether the picks depend on the blocks' true scores, which a real system
	// knows of those that it has loaded.
	Weighs() bool
}

// ByHead is a policy that picks from the scores of one group in one step.
type ByHead interface {
	Policy
	// Picker returns the policy's picker for successive steps of one group.
	Picker() Picker
}

// ByLayer is a policy that decides for the KV heads of a layer of one request together: all
// attend to equally many candidates, each to those most critical to it. The possible numbers
// are a list of stops, the last of which is all candidates.
type ByLayer interface {
	Policy
	// CountAt returns how many of n candidates are attended to at a stop, counted from 0, in
	// addition to the kept blocks.
	CountAt(stop, n, kept int) int
	// Report appends a head's values to dst, equally many for each view: at(i) is its i-th most
	// critical candidate, and only the first stops matter.
	Report(v *View, at func(i int) int, stops int, dst []float32) []float32
	// Decide returns the stop at which a layer's heads end, and the last one that they load,
	// from the mean over the heads of their reports. It looks at guess first.
	Decide(n, kept, guess int, mean func(i int) float64) (stop, load int)
}

// View is what a policy sees of one group in one decode step.
type View struct {
	Critical []float32 // [candidates] scores as the blocks' metadata estimate them
	Again    bool      // Critical is that of the picker's last view
	// [query heads that share the KV head][candidates] the same as each sees them; of Union
	Each [][]float32
	// For policies that weigh:
	Score [][]float32 // [query heads that share the KV head][candidates] true scores
	Kept  []float32   // true scores of the sinks and the window, which are attended to in any case
	Skew  float32     // a block holds exp(Skew*score) of the attention, in arbitrary units
}

// Weight returns the attention of a block of the given true score: the sum of exp(q·k) over its
// tokens, in arbitrary units.
func (v *View) Weight(score float32) float64 { return math.Exp(float64(v.Skew * score)) }

// keptWeight is the attention of the sinks and the window.
func (v *View) keptWeight() float64 {
	sum := 0.0
	for _, s := range v.Kept {
		sum += v.Weight(s)
	}
	return sum
}

// Picker picks blocks. It writes the indices of the picked candidates to dst[:0], without
// repeats, and returns them: the first `used` are attended to, the others loaded in vain. It
// may remember earlier steps to be faster; its picks depend on the view only.
type Picker interface {
	Pick(v *View, dst []uint16) (picked []uint16, used int)
}
