package traces

import (
	"math/rand/v2"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

// synthetic draws prompts and outputs from two distributions, independently, each with a random
// stream of its own: another output distribution has the same prompts.
type synthetic struct {
	generated
	prompt, output   Lengths
	prompts, outputs *rand.Rand
}

// newSynthetic returns the source of a spec that Validate has accepted.
func newSynthetic(s Spec, seed uint64) (*synthetic, error) {
	prompt, err := ParseLengths("workload.prompt_lengths", s.PromptLengths)
	if err != nil {
		return nil, err
	}
	output, err := ParseLengths("workload.output_lengths", s.OutputLengths)
	if err != nil {
		return nil, err
	}
	return &synthetic{
		prompt: prompt, output: output, prompts: des.Rand(seed, "traces.prompt_lengths"),
		outputs: des.Rand(seed, "traces.output_lengths"),
	}, nil
}

func (s *synthetic) next() (sim.Arrival, error) {
	return sim.Arrival{
		Prompt: s.prompt.Quantile(s.prompts.Float64()),
		Output: s.output.Quantile(s.outputs.Float64()),
	}, nil
}
