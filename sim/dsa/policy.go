package dsa

import "math"

// Policy says which blocks to attend to, from the scores of one group in one
// step.
type Policy interface {
	// Limit is the number of candidates up to which all are picked whatever
	// their scores.
	Limit() int
	// AtOnce is the most of so many candidates that must be in HBM at one time.
	AtOnce(candidates int) int
	// Weighs says whether the picks depend on the blocks' true scores, which a
	// real system knows of those that it has loaded.
	Weighs() bool
	// Picker returns the policy's picker for successive steps of one group.
	Picker() Picker
}

// View is what a policy sees of one group in one decode step.
type View struct {
	Critical []float32 // [candidates] scores as the blocks' metadata estimate them
	Again    bool      // Critical is that of the picker's last view
	// For policies that weigh:
	Score []float32 // [candidates] true scores
	Kept  []float32 // true scores of the sinks and the window, which are attended to in any case
	Skew  float32   // a block holds exp(Skew*score) of the attention, in arbitrary units
}

// Weight returns the attention of a block of the given true score: the sum of
// exp(q·k) over its tokens, in arbitrary units.
func (v *View) Weight(score float32) float64 { return math.Exp(float64(v.Skew * score)) }

// Picker picks blocks. It writes the indices of the picked candidates to
// dst[:0], without repeats, and returns them: the first `used` are attended to,
// those after them loaded though the policy then found that it could do
// without. It may remember earlier steps to be faster; its picks depend on the
// view alone.
type Picker interface {
	Pick(v *View, dst []uint16) (picked []uint16, used int)
}
