package traces

import (
	"math/rand/v2"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

// synthetic draws prompts and outputs independently from two distributions. Each has its own random
// stream, so changing the output distribution does not change the prompts.
type synthetic struct {
	generated
	prompt, output   Lengths
	prompts, outputs *rand.Rand
}

// newSynthetic returns the source of a validated spec.
func newSynthetic(s Spec, seed uint64) (*synthetic, error) {
	lengths, err := s.distributions()
	if err != nil {
		return nil, err
	}
	return &synthetic{
		prompt: lengths[promptsKey], output: lengths[outputsKey],
		prompts: des.Rand(seed, "traces.prompt_lengths"),
		outputs: des.Rand(seed, "traces.output_lengths"),
	}, nil
}

func (s *synthetic) next() (sim.Arrival, error) {
	return sim.Arrival{
		Prompt: s.prompt.Quantile(s.prompts.Float64()),
		Output: s.output.Quantile(s.outputs.Float64()),
	}, nil
}
