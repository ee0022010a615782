package run

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/sim"
)

// Marshal writes a summary, or several, as indented JSON.
func Marshal(sums any) ([]byte, error) {
	text, err := json.MarshalIndent(sums, "", "  ")
	return append(text, '\n'), err
}

// tabulate makes a table of summaries, one row a run.
func tabulate(sums []sim.Summary) *Table {
	phases := map[string]bool{}
	for _, s := range sums {
		for name := range s.PhaseS {
			phases[name] = true
		}
	}
	phaseNames := slices.Sorted(maps.Keys(phases))
	progressive := slices.ContainsFunc(sums, func(s sim.Summary) bool { return s.ProgressiveStats != nil })

	closed := slices.ContainsFunc(sums, func(s sim.Summary) bool { return s.Concurrency > 0 })

	header := strings.Split("name,system,model,gpu,seed,rate,requests,completed,rejected,served_share,preempted,simulated_s,steps", ",")
	for _, stat := range []string{"ttft", "tbt", "tpot", "e2e", "queue_delay"} {
		for _, q := range sim.StatNames {
			header = append(header, stat+"_"+q+"_s")
		}
	}
	header = append(header, "prompt_tok_s", "throughput_tok_s", "batch_mean", "blocks_loaded_per_step", "hit_ratio", "h2d_bytes", "d2h_bytes")
	for _, p := range phaseNames {
		header = append(header, "phase_"+p+"_s")
	}
	if progressive {
		header = append(header, "rounds_per_layer", "blocks_ahead")
	}
	if closed {
		header = append(header, "concurrency")
	}
	header = append(header, "good_share", "slo_met", "slo_missed", "warnings")

	t := NewTable(header...)
	for _, s := range sums {
		row := []any{s.Name, s.System, s.Model, s.GPU, s.Seed, s.Rate, s.Requests, s.Completed, s.Rejected, 1 - s.RejectedShare(),
			s.Preempted, s.SimulatedS, s.Steps}
		for _, stat := range []sim.Stats{s.TTFT, s.TBT, s.TPOT, s.E2E, s.QueueDelay} {
			for _, name := range sim.StatNames {
				row = append(row, stat.Of(name))
			}
		}
		row = append(row, s.PromptTokS, s.ThroughputTokS, s.BatchMean, s.BlocksLoadedPerStep, s.HitRatio, s.H2DBytes, s.D2HBytes)
		for _, p := range phaseNames {
			row = append(row, s.PhaseS[p])
		}
		if p := s.ProgressiveStats; p != nil {
			row = append(row, p.RoundsPerLayer, p.BlocksAhead)
		} else if progressive {
			row = append(row, "", "")
		}
		if closed {
			row = append(row, s.Concurrency)
		}
		t.Add(append(row, s.GoodShare, s.SLOMet, strings.Join(s.SLOMissed, " "), strings.Join(s.Warnings, "; "))...)
	}
	return t
}

// Number prints a float so that it reads as the same number.
func Number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
