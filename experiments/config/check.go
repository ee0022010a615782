package config

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/sim/sched"
	"github.com/sparseserve/sparseserve/traces"
)

// specEnums lists what the keys of a system may be where that is a choice of
// names.
var specEnums = []struct {
	key    string
	values []string
}{
	{"attention", []string{"full", "sparse"}},
	{"selection", dsa.Names()},
	{"psa_stop", []string{"layer", sim.PSAStopHead}},
	{"load_engine", hw.LoadEngines()},
	{"save_engine", hw.SaveEngines()},
	{"lookup", []string{"host", sim.LookupGPU}},
	{"eviction", kv.EvictionNames()},
	{"pool", []string{"unified", "per-layer"}},
	{"base", sched.BaseNames()},
	{"sampling", []string{"random", SamplingTopP}},
	{"prefill", []string{"plain", "chunked", "layer", "layer-chunked"}},
	{"over_length", []string{"truncate", "reject"}},
	{"heads", []string{"sampled", "full"}},
}

// SamplingTopP is the value of system.sampling that sorts logits.
const SamplingTopP = "top-p"

// checkSpec returns what makes a system impossible, or nil. The error's key is
// that of the [system] table.
func checkSpec(s *sim.Spec) *KeyError {
	fields := FieldsOf(s)
	value := func(key string) reflect.Value {
		i := slices.IndexFunc(fields, func(f Field) bool { return f.Key == key })
		return fields[i].Value
	}
	for _, e := range specEnums {
		if v := value(e.key).String(); !slices.Contains(e.values, v) {
			return &KeyError{Key: e.key, Value: quote(v), Reason: oneOf(v, e.values)}
		}
	}
	for _, f := range fields {
		if f.Value.CanFloat() && (math.IsNaN(f.Value.Float()) || math.IsInf(f.Value.Float(), 0)) {
			return &KeyError{Key: f.Key, Value: Show(f.Value.Float()), Reason: "must be a finite number"}
		}
	}
	atLeast := func(key string, low float64) *KeyError {
		v := value(key)
		x := v.Convert(reflect.TypeFor[float64]()).Float()
		if x < low {
			return &KeyError{Key: key, Value: fmt.Sprint(v.Interface()), Reason: fmt.Sprintf("must be at least %g", low)}
		}
		return nil
	}
	for _, bound := range []struct {
		key string
		low float64
	}{
		{"block_tokens", 1}, {"budget_tokens", 1}, {"sink_blocks", 0}, {"window_blocks", 0}, {"dense_layers", 0},
		{"kv_gib", 0}, {"dram_gib", 0}, {"save_buffer_mib", 0}, {"max_requests", 1}, {"max_tokens", 1},
		{"watermark", 0}, {"window", 1}, {"chunk_tokens", 1}, {"max_inject", 0}, {"max_prompt_tokens", 0},
		{"sample_groups", 1},
	} {
		if err := atLeast(bound.key, bound.low); err != nil {
			return err
		}
	}
	switch {
	case !(s.Utilisation > 0 && s.Utilisation <= 1):
		return &KeyError{Key: "utilisation", Value: fmt.Sprint(s.Utilisation), Reason: "is a share of HBM, above 0 and at most 1"}
	case s.Watermark >= 1:
		return &KeyError{Key: "watermark", Value: fmt.Sprint(s.Watermark), Reason: "is a share of all blocks, below 1"}
	case s.Sparse() && s.BudgetTokens < s.BlockTokens:
		return &KeyError{Key: "budget_tokens", Value: fmt.Sprint(s.BudgetTokens),
			Reason: fmt.Sprintf("is below one block of %d tokens", s.BlockTokens)}
	case s.Sparse() && s.WindowBlocks < 1:
		return &KeyError{Key: "window_blocks", Value: fmt.Sprint(s.WindowBlocks),
			Reason: "must be at least 1: the open block has no metadata to select it by"}
	case s.Sparse() && s.SinkBlocks+s.WindowBlocks >= s.BudgetTokens/s.BlockTokens:
		return &KeyError{Key: "sink_blocks", Value: fmt.Sprint(s.SinkBlocks),
			Reason: fmt.Sprintf("with window_blocks = %d leaves nothing of the budget of %d tokens", s.WindowBlocks, s.BudgetTokens)}
	case !(s.Epsilon > 0 && s.Epsilon < 1):
		return &KeyError{Key: "epsilon", Value: Show(s.Epsilon), Reason: "is a share of the attention, above 0 and below 1"}
	case s.Microbatch < 1:
		return &KeyError{Key: "microbatch", Value: fmt.Sprint(s.Microbatch), Reason: "is a number of blocks, at least 1"}
	case !(s.Margin >= 0):
		return &KeyError{Key: "margin", Value: Show(s.Margin), Reason: "must be at least 0"}
	case s.Sparse() && s.Selection == "infinigen" && s.BlockTokens != 1:
		return &KeyError{Key: "block_tokens", Value: fmt.Sprint(s.BlockTokens), Reason: "must be 1: infinigen selects tokens"}
	case s.Offload && s.Eviction == kv.ByScore && (!s.Sparse() || s.Selections != ""):
		return &KeyError{Key: "eviction", Value: quote(s.Eviction),
			Reason: "needs scores of the blocks, which neither full attention nor recorded selections have"}
	case s.GPULookup() && (!s.Sparse() || s.LoadEngine != "flash"):
		return &KeyError{Key: "lookup", Value: quote(s.Lookup),
			Reason: "needs attention = \"sparse\" and load_engine = \"flash\": what the GPU finds missing only a kernel can load without asking the host"}
	case s.Offload && s.DRAMGiB == 0:
		return &KeyError{Key: "dram_gib", Value: "0", Reason: "must be above 0 with offload"}
	}
	return nil
}

// oneOf phrases which values there are.
func oneOf(got string, values []string) string {
	return "unknown; use " + strings.Join(values, ", ") + DidYouMean(got, values)
}

// checkScores returns what makes a score process impossible, or nil.
func checkScores(p traces.ScoreParams) *KeyError {
	for _, f := range []struct {
		key   string
		value float64
	}{
		{"drift", p.Drift}, {"noise", p.Noise}, {"jump", p.Jump}, {"error", p.Error}, {"min_max_error", p.MinMaxError},
		{"mean_error", p.MeanError}, {"representative_error", p.RepresentativeError}, {"speculation_error", p.SpeculationError},
		{"within", p.Within}, {"group", p.Group}, {"skew_layers", p.SkewLayers}, {"skew_heads", p.SkewHeads}, {"skew_tokens", p.SkewTokens},
	} {
		if !(f.value >= 0) || math.IsInf(f.value, 0) {
			return &KeyError{Key: "scores." + f.key, Value: Show(f.value), Reason: "is a standard deviation, 0 or above"}
		}
	}
	for _, f := range []struct {
		key   string
		value float64
	}{{"sink", p.Sink}, {"recent", p.Recent}} {
		if math.IsNaN(f.value) || math.IsInf(f.value, 0) {
			return &KeyError{Key: "scores." + f.key, Value: Show(f.value), Reason: "must be a finite number"}
		}
	}
	switch {
	case !(p.JumpRate >= 0 && p.JumpRate <= 1):
		return &KeyError{Key: "scores.jump_rate", Value: Show(p.JumpRate), Reason: "is a probability, 0 to 1"}
	case !(p.Rho >= 0 && p.Rho < 1):
		return &KeyError{Key: "scores.rho", Value: Show(p.Rho), Reason: "is a correlation, at least 0 and below 1"}
	case !(p.Skew > 0) || math.IsInf(p.Skew, 0):
		return &KeyError{Key: "scores.skew", Value: Show(p.Skew), Reason: "must be above 0"}
	}
	return nil
}

// checkSLO returns what makes a service level impossible, or nil.
func checkSLO(s SLO) *KeyError {
	for _, f := range []struct {
		key   string
		value float64
		zero  bool
	}{{"tbt_factor", s.TBTFactor, false}, {"tbt_s", s.TBTS, true}, {"delay_s", s.DelayS, false}} {
		if !(f.value > 0 || f.zero && f.value == 0) || math.IsInf(f.value, 0) {
			return &KeyError{Key: "slo." + f.key, Value: Show(f.value), Reason: "must be above 0"}
		}
	}
	if stats := []string{"mean", "median"}; !slices.Contains(stats, s.DelayStat) {
		return &KeyError{Key: "slo.delay_stat", Value: quote(s.DelayStat), Reason: oneOf(s.DelayStat, stats)}
	}
	return nil
}
