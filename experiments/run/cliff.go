package run

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// nearShare is the share of the time at a limit from which a run is near the limit.
const nearShare = 0.02

// paces are the factors on step times for repeats of a run near a limit.
var paces = [2]float64{0.95, 1.05}

// NearLimit reports whether a run came near a limit of its servers, where a small error of step
// times causes a large error of TTFT. A run whose queue grows without end is beyond the limit.
func NearLimit(s *metrics.Summary) bool {
	return max(s.BatchFull, s.KVFull) >= nearShare && s.Completed > 0 && s.Interrupted == "" &&
		!warn.Has(s.Warnings, warn.UnstableQueue)
}

// Cliff repeats a run that came near a limit of its servers, with steps 5 % shorter and 5 % longer,
// and adds the outcomes to the summary: Summary.Paced and a warning. It does nothing for any other
// run. finished is called like Sink.Finished.
func Cliff(ctx context.Context, run Runner, p *config.Point, s *metrics.Summary,
	finished func()) error {
	if !NearLimit(s) {
		return nil
	}
	var paced []metrics.Paced
	for _, pace := range paces {
		o, err := run(ctx, *p, Sink{Requests: io.Discard, Finished: finished, StepTime: pace})
		if err != nil {
			return err
		}
		paced = append(paced, metrics.Paced{StepTime: pace, TTFT: o.TTFT, TBT: o.TBT, SLOMet: o.SLOMet})
	}
	s.Paced = paced
	s.Warnings = append(s.Warnings, cliffWarning(p, s))
	return nil
}

// cliffWarning describes the limit that the run is near, and the outcomes of the repeats.
func cliffWarning(p *config.Point, s *metrics.Summary) warn.Warning {
	where, share := fmt.Sprintf("max_requests = %d", p.System.MaxRequests), s.BatchFull
	if s.KVFull > share {
		where, share = "all KV", s.KVFull
	}
	short, long := &s.Paced[0], &s.Paced[1]
	var text strings.Builder
	fmt.Fprintf(&text, "near a limit: within 5 %% of %s for %.0f %% of the time; step times "+
		"5 %% longer would make mean TTFT %.3g s instead of %.3g, P90 TTFT %.3g s instead of %.3g and "+
		"mean TBT %.3g ms instead of %.3g", where, 100*share, long.TTFT.Mean, s.TTFT.Mean,
		long.TTFT.P90, s.TTFT.P90, 1e3*long.TBT.Mean, 1e3*s.TBT.Mean)
	fmt.Fprintf(&text, "; 5 %% shorter: %.3g s, %.3g s and %.3g ms", short.TTFT.Mean, short.TTFT.P90,
		1e3*short.TBT.Mean)
	if met, known := s.MetSLO(); known {
		verdict := map[bool]string{true: "met", false: "missed"}
		if was, is := verdict[met], verdict[*long.SLOMet]; was != is {
			fmt.Fprintf(&text, "; the SLO is %s, and with longer steps %s", was, is)
		}
		if was, is := verdict[met], verdict[*short.SLOMet]; was != is {
			fmt.Fprintf(&text, "; the SLO is %s, and with shorter steps %s", was, is)
		}
	}
	return warn.New(warn.NearLimit, "%s", &text).About(where)
}
