package calibrate

import "fmt"

// dealt is a Timed that makes all samples at the first call, and returns the next ones in each
// call.
func dealt(all func() ([]float64, error)) Timed {
	var samples []float64
	return func(_, repeats int) (out []float64, err error) {
		if samples == nil {
			if samples, err = all(); err != nil {
				return nil, err
			}
		}
		if repeats > len(samples) {
			return nil, fmt.Errorf("%d samples asked for, a run has %d", repeats, len(samples))
		}
		out, samples = samples[:repeats], samples[repeats:]
		return out, nil
	}
}

// dealtTo splits values into n groups in turn and returns one value per group.
func dealtTo(values []float64, n int, reduce func([]float64) float64) []float64 {
	hands := make([][]float64, n)
	for i, v := range values {
		hands[i%n] = append(hands[i%n], v)
	}
	reduced := make([]float64, n)
	for i, hand := range hands {
		reduced[i] = reduce(hand)
	}
	return reduced
}
