package weights

import (
	"fmt"
	"math"
)

// Scaling is how a checkpoint stretches its rotary embedding to a longer context.
type Scaling string

const (
	NoScaling     Scaling = ""
	LinearScaling Scaling = "linear" // every frequency divided by Factor
	Llama3Scaling Scaling = "llama3" // only low frequencies, with a soft border
)

// Rope is the rotary embedding: pair d of D / 2 rotates by Theta^(-2d/D) a token, scaled.
type Rope struct {
	Theta   float64
	Scaling Scaling
	Factor  float64
	// Of llama3: a wavelength above OriginalContext / LowFactor tokens is divided by Factor, one
	// below OriginalContext / HighFactor is left.
	LowFactor, HighFactor float64
	OriginalContext       float64 // tokens
}

// InvFreq returns the angle a token of each of headDim / 2 pairs, in radians. It rounds to float32
// where PyTorch does: at a position of a million the last bit of the frequency is
// hundredths of a radian.
func (r Rope) InvFreq(headDim int) []float32 {
	freq := make([]float32, headDim/2)
	for d := range freq {
		exponent := float32(2*d) / float32(headDim)
		f := 1 / float32(math.Pow(r.Theta, float64(exponent)))
		switch r.Scaling {
		case LinearScaling:
			f /= float32(r.Factor)
		case Llama3Scaling:
			f = r.llama3(f)
		}
		freq[d] = f
	}
	return freq
}

func (r Rope) llama3(f float32) float32 {
	wavelength := 2 * math.Pi / float64(f) // tokens a period
	low, high := r.OriginalContext/r.LowFactor, r.OriginalContext/r.HighFactor
	switch {
	case wavelength < high:
		return f
	case wavelength > low:
		return f / float32(r.Factor)
	}
	keep := float32((r.OriginalContext/wavelength - r.LowFactor) / (r.HighFactor - r.LowFactor))
	return (1-keep)*f/float32(r.Factor) + keep*f
}

func (r Rope) validate() error {
	for _, f := range []struct {
		key   string
		value float64
		used  bool
	}{
		{"rope_theta", r.Theta, true},
		{"rope_scaling: factor", r.Factor, r.Scaling != NoScaling},
		{"rope_scaling: low_freq_factor", r.LowFactor, r.Scaling == Llama3Scaling},
		{"rope_scaling: high_freq_factor", r.HighFactor, r.Scaling == Llama3Scaling},
		{"rope_scaling: original_max_position_embeddings", r.OriginalContext,
			r.Scaling == Llama3Scaling},
	} {
		if f.used && !(f.value > 0 && f.value <= 1e12) { // NaN too
			return fmt.Errorf("%s: want a positive number, got %g", f.key, f.value)
		}
	}
	switch r.Scaling {
	case NoScaling, LinearScaling:
	case Llama3Scaling:
		if r.HighFactor <= r.LowFactor {
			return fmt.Errorf("rope_scaling: want high_freq_factor above low_freq_factor = %g, "+
				"got %g", r.LowFactor, r.HighFactor)
		}
	default:
		return fmt.Errorf("rope_scaling: %q is not supported; want none, linear or llama3",
			string(r.Scaling))
	}
	return nil
}
