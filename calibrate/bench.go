package calibrate

import "errors"

// Bench carries points out on some machine.
type Bench interface {
	// Prepare sets a point up and verifies one result of it. The returned call is good until the
	// next Prepare. It fails with ErrSkip where the machine has no such call.
	Prepare(Point) (Timed, error)
}

// Timed runs a prepared point warmup + repeats times and returns a sample of
// each repeat, in seconds.
type Timed func(warmup, repeats int) ([]float64, error)

// ErrSkip marks a point that this machine has no way to measure.
var ErrSkip = errors.New("not available here")
