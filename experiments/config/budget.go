package config

import (
	"fmt"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim"
)

// KVBudget returns the HBM that a system has for KV, metadata and prefill
// buffers.
func KVBudget(gpu *hw.Profile, model *hw.Model, s *sim.Spec) (int64, error) {
	plan, err := gpu.KVBudget(model, s.Utilisation, s.MaxTokens, s.VerifiedRows())
	if err != nil {
		return 0, err
	}
	if s.KVGiB == 0 {
		return plan.KV, nil
	}
	want := int64(s.KVGiB * (1 << 30))
	if want > plan.KV {
		return 0, &KeyError{Key: "kv_gib", Value: Show(s.KVGiB),
			Reason: fmt.Sprintf("%s leaves %.2f GiB for KV next to %s at a utilisation of %g",
				gpu.Name, float64(plan.KV)/(1<<30), model.Name, s.Utilisation)}
	}
	return want, nil
}
