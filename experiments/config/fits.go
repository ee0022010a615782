package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/cost"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
)

// WouldFit lists the cards that hold the weights of a point's model and the KV of n tokens, each
// with the smallest number of GPUs. The point's own card comes first.
func WouldFit(p Point, tokens int) string {
	cards := append([]string{p.GPU}, slices.DeleteFunc(hw.CardNames(),
		func(name string) bool { return name == p.GPU })...)
	var words []string
	for _, card := range cards {
		if card != p.GPU {
			p.Card = nil
		}
		p.GPU = card
		for _, n := range []int{1, 2, 4, 8} {
			if p.System.TensorParallel = n; p.holds(tokens) {
				words = append(words, fmt.Sprintf("%dx %s", n, card))
				break
			}
		}
	}
	if len(words) == 0 {
		return "no card does with up to 8 GPUs (system.tensor_parallel)"
	}
	return "these do (system.tensor_parallel x gpu): " + strings.Join(words, ", ")
}

// holds reports whether the GPUs of a point have memory for its model and the KV of n tokens.
func (p *Point) holds(tokens int) bool {
	h, err := p.Hardware()
	return err == nil && cost.CheckParallel(h.GPU, p.System.TensorParallel) == nil &&
		h.KV >= int64(tokens)*h.Shard.KVBytesPerToken()
}

// KVBudget returns the HBM bytes of a system for KV, metadata and prefill buffers.
func KVBudget(gpu *hw.Profile, model *llm.Model, s *sim.Spec) (int64, error) {
	plan, err := gpu.KVBudget(model, s.Utilisation, s.MaxTokens, s.VerifiedRows())
	if err != nil {
		return 0, err
	}
	if s.KVGiB == 0 {
		return plan.KV, nil
	}
	want := int64(s.KVGiB * (1 << 30))
	if want > plan.KV {
		return 0, &KeyError{Key: "system.kv_gib", Value: Show(s.KVGiB),
			Reason: fmt.Sprintf("%s leaves %.2f GiB for KV next to %s at a utilisation of %g",
				gpu.Name, float64(plan.KV)/(1<<30), model.Name, s.Utilisation)}
	}
	return want, nil
}
