package run

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// Marshal writes a summary, or several, as indented JSON.
func Marshal(sums any) ([]byte, error) {
	text, err := json.MarshalIndent(sums, "", "  ")
	return append(text, '\n'), err
}

// useNames are the columns of Summary.Uses, in its order.
var useNames = []string{"hbm", "hbm_kv", "dram", "gpu", "h2d", "d2h"}

// tabulate returns a table of summaries, one row per run.
func tabulate(sums []metrics.Summary) *Table {
	phases := map[string]bool{}
	for _, s := range sums {
		for name := range s.PhaseS {
			phases[name] = true
		}
	}
	phaseNames := slices.Sorted(maps.Keys(phases))
	progressive := slices.ContainsFunc(sums,
		func(s metrics.Summary) bool { return s.ProgressiveStats != nil })
	windows := slices.ContainsFunc(sums, func(s metrics.Summary) bool { return s.Window != nil })

	prefixes := slices.ContainsFunc(sums, func(s metrics.Summary) bool { return s.PrefixCache != nil })
	fleets := slices.ContainsFunc(sums, func(s metrics.Summary) bool { return s.Replicas > 0 })
	closed := slices.ContainsFunc(sums, func(s metrics.Summary) bool { return s.Concurrency > 0 })

	header := strings.Split(
		"name,system,model,gpu,seed,rate,requests,completed,rejected,served_share,preempted,"+
			"recomputed_tokens,recomputed_share,simulated_s,steps", ",")
	for _, stat := range []string{"ttft", "tbt", "tpot", "e2e", "queue_delay"} {
		for _, q := range metrics.StatNames {
			header = append(header, stat+"_"+q+"_s")
		}
	}
	header = append(header, "request_throughput", "request_goodput", "prompt_tok_s",
		"throughput_tok_s", "total_tok_s", "batch_mean", "blocks_loaded_per_step", "hit_ratio",
		"h2d_bytes", "d2h_bytes")
	for _, u := range useNames {
		header = append(header, u+"_use_mean", u+"_use_peak")
	}
	for _, p := range phaseNames {
		header = append(header, "phase_"+p+"_s")
	}
	if progressive {
		header = append(header, "rounds_per_layer", "blocks_ahead")
	}
	if prefixes {
		header = append(header, "prefix_tokens", "prefix_hit_tokens", "prefix_hit_dram_tokens",
			"prefix_hit_ssd_tokens", "prefix_hit_share")
	}
	if closed {
		header = append(header, "concurrency")
	}
	if fleets {
		header = append(header, "replicas", "router", "retried")
	}
	if windows {
		header = append(header, "window_from_s", "window_to_s", "window_warmup", "window_drain")
	}
	header = append(header, "good_share", "slo_met", "slo_missed", "warnings")

	t := NewTable(header...)
	for _, s := range sums {
		row := []any{s.Name, s.System, s.Model, s.GPU, s.Seed, s.Rate, s.Requests, s.Completed,
			s.Rejected, 1 - s.RejectedShare(),
			s.Preempted, s.RecomputedTokens, s.RecomputedShare, s.SimulatedS, s.Steps}
		for _, stat := range []metrics.Stats{s.TTFT, s.TBT, s.TPOT, s.E2E, s.QueueDelay} {
			for _, name := range metrics.StatNames {
				row = append(row, stat.Of(name))
			}
		}
		row = append(row, s.RequestThroughput, s.RequestGoodput, s.PromptTokS, s.ThroughputTokS,
			s.TotalTokS, s.BatchMean, s.BlocksLoadedPerStep, s.HitRatio, s.H2DBytes, s.D2HBytes)
		for _, u := range []*metrics.Use{s.HBMUse, s.HBMKVUse, s.DRAMUse, s.GPUUse, s.H2DUse, s.D2HUse} {
			if u == nil {
				row = append(row, "", "")
				continue
			}
			row = append(row, u.Mean, u.Peak)
		}
		for _, p := range phaseNames {
			row = append(row, s.PhaseS[p])
		}
		if p := s.ProgressiveStats; p != nil {
			row = append(row, p.RoundsPerLayer, p.BlocksAhead)
		} else if progressive {
			row = append(row, "", "")
		}
		if p := s.PrefixCache; p != nil {
			row = append(row, p.PromptTokens, p.HitTokens, p.DRAM.HitTokens, p.SSD.HitTokens, p.HitShare)
		} else if prefixes {
			row = append(row, "", "", "", "", "")
		}
		if closed {
			row = append(row, s.Concurrency)
		}
		if fleets {
			row = append(row, max(1, s.Replicas), s.Router, s.Retried)
		}
		if w := s.Window; w != nil {
			row = append(row, w.FromS, w.ToS, w.Warmup, w.Drain)
		} else if windows {
			row = append(row, "", "", "", "")
		}
		var met any = "" // not known
		if is, known := s.MetSLO(); known {
			met = is
		}
		t.Add(append(row, s.GoodShare, met, strings.Join(s.SLOMissed, " "),
			strings.Join(warn.Texts(s.Warnings), "; "))...)
	}
	return t
}
