package calibrate

import "errors"

// Bench measures points on a machine.
type Bench interface {
	// Prepare sets a point up and verifies one result of it. The returned call is valid until the
	// next Prepare. It fails with ErrSkip if the machine has no such call.
	Prepare(Point) (Timed, error)
}

// Timed runs a prepared point warmup + repeats times and returns one sample per repeat, in seconds.
type Timed func(warmup, repeats int) ([]float64, error)

// ErrSkip marks a point that this machine cannot measure.
var ErrSkip = errors.New("not available here")
