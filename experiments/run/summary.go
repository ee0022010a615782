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

// summaryColumns returns the columns of a table of summaries. Some need a run that has them.
func summaryColumns(sums []metrics.Summary) (all []columns[metrics.Summary]) {
	type summary = metrics.Summary
	add := func(names string, cells func(*summary) []any) {
		all = append(all, columns[summary]{names, cells})
	}
	some := func(has func(*summary) bool) bool {
		return slices.ContainsFunc(sums, func(s summary) bool { return has(&s) })
	}
	optional := func(names string, has func(*summary) bool, cells func(*summary) []any) {
		if some(has) {
			add(names, func(s *summary) []any {
				if !has(s) {
					return make([]any, 1+strings.Count(names, ","))
				}
				return cells(s)
			})
		}
	}
	add("name,system,model,gpu,seed,rate,requests,completed,rejected,served_share,preempted,"+
		"recomputed_tokens,recomputed_share,simulated_s,steps", func(s *summary) []any {
		return []any{s.Name, s.System, s.Model, s.GPU, s.Seed, s.Rate, s.Requests, s.Completed,
			s.Rejected, 1 - s.RejectedShare(), s.Preempted, s.RecomputedTokens, s.RecomputedShare,
			s.SimulatedS, s.Steps}
	})
	for i, name := range []string{"ttft", "tbt", "tpot", "e2e", "queue_delay"} {
		for _, stat := range metrics.StatNames {
			add(name+"_"+stat+"_s", func(s *summary) []any {
				of := [...]*metrics.Stats{&s.TTFT, &s.TBT, &s.TPOT, &s.E2E, &s.QueueDelay}[i]
				return []any{of.Of(stat)}
			})
		}
	}
	add("request_throughput,request_goodput,prompt_tok_s,throughput_tok_s,total_tok_s,batch_mean,"+
		"blocks_loaded_per_step,hit_ratio,h2d_bytes,d2h_bytes", func(s *summary) []any {
		return []any{s.RequestThroughput, s.RequestGoodput, s.PromptTokS, s.ThroughputTokS, s.TotalTokS,
			s.BatchMean, s.BlocksLoadedPerStep, s.HitRatio, s.H2DBytes, s.D2HBytes}
	})
	for i, name := range []string{"hbm", "hbm_kv", "dram", "gpu", "h2d", "d2h"} {
		add(name+"_use_mean,"+name+"_use_peak", func(s *summary) []any {
			of := [...]*metrics.Use{s.HBMUse, s.HBMKVUse, s.DRAMUse, s.GPUUse, s.H2DUse, s.D2HUse}[i]
			if of == nil {
				return make([]any, 2)
			}
			return []any{of.Mean, of.Peak}
		})
	}
	phases := map[string]bool{}
	for _, s := range sums {
		for name := range s.PhaseS {
			phases[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(phases)) {
		add("phase_"+name+"_s", func(s *summary) []any { return []any{s.PhaseS[name]} })
	}
	optional("rounds_per_layer,blocks_ahead",
		func(s *summary) bool { return s.ProgressiveStats != nil },
		func(s *summary) []any {
			return []any{s.ProgressiveStats.RoundsPerLayer, s.ProgressiveStats.BlocksAhead}
		})
	optional("prefix_tokens,prefix_hit_tokens,prefix_hit_dram_tokens,prefix_hit_ssd_tokens,"+
		"prefix_hit_share", func(s *summary) bool { return s.PrefixCache != nil },
		func(s *summary) []any {
			p := s.PrefixCache
			return []any{p.PromptTokens, p.HitTokens, p.DRAM.HitTokens, p.SSD.HitTokens, p.HitShare}
		})
	if some(func(s *summary) bool { return s.Concurrency > 0 }) {
		add("concurrency", func(s *summary) []any { return []any{s.Concurrency} })
	}
	if some(func(s *summary) bool { return s.Replicas > 0 }) {
		add("replicas,router,retried",
			func(s *summary) []any { return []any{max(1, s.Replicas), s.Router, s.Retried} })
	}
	optional("window_from_s,window_to_s,window_warmup,window_drain",
		func(s *summary) bool { return s.Window != nil },
		func(s *summary) []any {
			w := s.Window
			return []any{w.FromS, w.ToS, w.Warmup, w.Drain}
		})
	add("good_share,slo_met,slo_missed,warnings", func(s *summary) []any {
		var met any // not known
		if is, known := s.MetSLO(); known {
			met = is
		}
		return []any{s.GoodShare, met, strings.Join(s.SLOMissed, " "),
			strings.Join(warn.Texts(s.Warnings), "; ")}
	})
	return all
}

// tabulate returns a table of summaries, one row per run.
func tabulate(sums []metrics.Summary) *Table {
	all, t := summaryColumns(sums), NewTable()
	for _, c := range all {
		t.rows[0] = append(t.rows[0], strings.Split(c.names, ",")...)
	}
	for i := range sums {
		var row []any
		for _, c := range all {
			row = append(row, c.cells(&sums[i])...)
		}
		t.Add(row...)
	}
	return t
}
