package run

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sparseserve/sim"
)

// storedSummary is a summary as files hold it: without the wall time, which
// differs from run to run.
type storedSummary struct {
	*sim.Summary
	WallS *float64 `json:"wall_s,omitempty"`
}

func marshalSummary(sum *sim.Summary) ([]byte, error) {
	text, err := json.MarshalIndent(storedSummary{Summary: sum}, "", "  ")
	return append(text, '\n'), err
}

func MarshalSummaries(sums []sim.Summary) ([]byte, error) {
	stored := make([]storedSummary, len(sums))
	for i := range sums {
		stored[i].Summary = &sums[i]
	}
	text, err := json.MarshalIndent(stored, "", "  ")
	return append(text, '\n'), err
}

// tabulate writes summaries as CSV, one row a run.
func tabulate(sums []sim.Summary) []byte {
	phases := map[string]bool{}
	for _, s := range sums {
		for name := range s.PhaseS {
			phases[name] = true
		}
	}
	phaseNames := slices.Sorted(maps.Keys(phases))
	progressive := slices.ContainsFunc(sums, func(s sim.Summary) bool { return s.ProgressiveStats != nil })

	header := strings.Split("name,system,model,gpu,seed,rate,requests,completed,rejected,preempted,simulated_s,steps", ",")
	for _, stat := range []string{"ttft", "tbt", "queue_delay"} {
		for _, q := range []string{"mean", "p50", "p90", "p99"} {
			header = append(header, stat+"_"+q+"_s")
		}
	}
	header = append(header, "throughput_tok_s", "batch_mean", "blocks_loaded_per_step", "hit_ratio", "h2d_bytes", "d2h_bytes")
	for _, p := range phaseNames {
		header = append(header, "phase_"+p+"_s")
	}
	if progressive {
		header = append(header, "rounds_per_layer", "blocks_ahead")
	}
	header = append(header, "slo_met", "warnings")

	var out bytes.Buffer
	w := csv.NewWriter(&out)
	w.Write(header)
	for _, s := range sums {
		row := []string{s.Name, s.System, s.Model, s.GPU, strconv.FormatUint(s.Seed, 10), Number(s.Rate),
			strconv.Itoa(s.Requests), strconv.Itoa(s.Completed), strconv.Itoa(s.Rejected), strconv.Itoa(s.Preempted),
			Number(s.SimulatedS), strconv.FormatInt(s.Steps, 10)}
		for _, stat := range []sim.Stats{s.TTFT, s.TBT, s.QueueDelay} {
			row = append(row, Number(stat.Mean), Number(stat.P50), Number(stat.P90), Number(stat.P99))
		}
		row = append(row, Number(s.ThroughputTokS), Number(s.BatchMean), Number(s.BlocksLoadedPerStep), Number(s.HitRatio),
			strconv.FormatInt(s.H2DBytes, 10), strconv.FormatInt(s.D2HBytes, 10))
		for _, p := range phaseNames {
			row = append(row, Number(s.PhaseS[p]))
		}
		if p := s.ProgressiveStats; p != nil {
			row = append(row, Number(p.RoundsPerLayer), strconv.FormatInt(p.BlocksAhead, 10))
		} else if progressive {
			row = append(row, "", "")
		}
		w.Write(append(row, strconv.FormatBool(s.SLOMet), strings.Join(s.Warnings, "; ")))
	}
	w.Flush()
	return out.Bytes()
}

func Number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
