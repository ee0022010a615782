package dsa

import "math"

// Policy selects the blocks to attend to: head by head (ByHead) or for all heads of a layer
// together (ByLayer).
type Policy interface {
	// Limit is the largest number of candidates at which all are picked regardless of score.
	Limit() int
	// AtOnce is the largest number of the candidates that must be in HBM at the same time.
	AtOnce(candidates int) int
	// Weighs reports whether the selection depends on the blocks' true scores, which a real
	// system knows only for loaded blocks.
	Weighs() bool
}

// ByHead is a policy that selects from the scores of one group in one step.
type ByHead interface {
	Policy
	// Picker returns a picker for successive steps of one group.
	Picker() Picker
}

// ByLayer is a policy that decides for all KV heads of a layer of one request together. All
// heads attend to the same number of candidates, each to its own most critical ones. The
// possible numbers are a list of stops; at the last stop all candidates are picked.
type ByLayer interface {
	Policy
	// CountAt returns the number of candidates, out of n, that are attended to at a stop in
	// addition to the kept blocks. Stops count from 0.
	CountAt(stop, n, kept int) int
	// Report appends a head's values to dst, the same number for each view. at(i) is the head's
	// i-th most critical candidate. Only the first stops matter.
	Report(v *View, at func(i int) int, stops int, dst []float32) []float32
	// Decide returns the stop at which the attention of a layer's heads ends and the last stop
	// that they load, from the mean of the heads' reports. Its search starts at guess.
	Decide(n, kept, guess int, mean func(i int) float64) (stop, load int)
}

// View is a policy's input for one group in one decode step.
type View struct {
	Critical []float32 // [candidates] scores estimated from block metadata
	Again    bool      // Critical is unchanged since the picker's last view
	// [query heads that share the KV head][candidates] scores estimated per query head, for Union
	Each [][]float32
	// For policies whose Weighs returns true:
	Score [][]float32 // [query heads that share the KV head][candidates] true scores
	Kept  []float32   // true scores of the sinks and the window, which are always attended to
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
// repeats, and returns them. The first `used` are attended to; the others are loaded but not
// used. It may use earlier steps to be faster, but its picks depend only on the view.
type Picker interface {
	Pick(v *View, dst []uint16) (picked []uint16, used int)
}
