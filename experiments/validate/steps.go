package validate

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/sparseserve/sparseserve/cuda/live"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/cost"
	"github.com/sparseserve/sparseserve/internal/stats"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// phaseNames are the phases of a step, in the order of phaseTimes.
var phaseNames = []string{"linears", "prefill_attention", "prefill_index", "dense_attention",
	"sparse_attention", "scoring", "load_stall", "save_stall", "head", "host"}

// phaseTimes returns the seconds of each phase. The host's remainder is negative if the GPU events
// add up to more than the step.
func phaseTimes(p *metrics.Phases) (all []float64) {
	for _, t := range []des.Time{p.Linears, p.PrefillAttention, p.PrefillIndex, p.DenseAttention,
		p.SparseAttention, p.Scoring, p.LoadStall, p.SaveStall, p.Head, p.Host} {
		all = append(all, secondsOf(t))
	}
	return all
}

// secondsOf returns the float64 nearest to a time in seconds.
func secondsOf(t des.Time) float64 { return float64(t) / float64(des.Second) }

// step is one step of a live run, with the modelled times of its batch.
type step struct {
	mixed       bool // has a prefill
	live, model *metrics.Timing
}

// priced prices the steps of a live run with the modelled device of a point.
func priced(p *config.Point, dir string) ([]step, error) {
	r, err := askedIn(dir)
	if err != nil {
		return nil, err
	}
	gpu, err := p.Machine()
	if err != nil {
		return nil, err
	}
	return r.priced(gpu)
}

// priced prices the steps of the run with the modelled device of a profile.
func (r *askedRun) priced(gpu *hw.Profile) ([]step, error) {
	device, err := cost.NewDevice(gpu, r.Model, r.Options)
	if err != nil {
		return nil, err
	}
	times, err := live.Price(r.Steps, device)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.dir, err)
	}
	all := make([]step, len(r.Steps))
	for i := range r.Steps {
		recorded, decodes := &r.Steps[i], 0
		for j := range recorded.Works {
			decodes = max(decodes, recorded.Works[j].Decodes)
		}
		all[i] = step{recorded.Step.Requests > decodes, &recorded.Timing, &times[i]}
	}
	return all, nil
}

// compareSteps compares the times of identical batches, for decode-only steps and for other steps.
func compareSteps(run string, steps []step) []Comparison {
	var out []Comparison
	for _, kind := range []string{"decode", "mixed"} {
		var off []float64
		var live, model, ratios float64
		livePhases, modelPhases := make([]float64, len(phaseNames)), make([]float64, len(phaseNames))
		split := 0
		for i := range steps {
			s := &steps[i]
			l, m := secondsOf(s.live.Elapsed), secondsOf(s.model.Elapsed)
			if s.mixed != (kind == "mixed") || l <= 0 {
				continue
			}
			live, model, ratios = live+l, model+m, ratios+m/l
			off = append(off, math.Abs(m/l-1))
			if s.live.Phases.Unsplit == 0 { // the live device split its time into phases
				split++
				floats.Add(livePhases, phaseTimes(&s.live.Phases))
				floats.Add(modelPhases, phaseTimes(&s.model.Phases))
			}
		}
		n := float64(len(off))
		if n == 0 {
			continue
		}
		slices.Sort(off)
		name := "step_" + kind + "_"
		out = append(out, compare(run, name+"mean_s", live/n, model/n),
			compare(run, name+"ratio", 1, ratios/n),
			measured(run, name+"abs_error_p50", stats.Of(off, 50)),
			measured(run, name+"abs_error_p95", stats.Of(off, 95)))
		if split == 0 {
			continue
		}
		for j, phase := range phaseNames {
			if livePhases[j] != 0 || modelPhases[j] != 0 {
				out = append(out, compare(run, "phase_"+kind+"_"+phase+"_s", livePhases[j], modelPhases[j]))
			}
		}
	}
	return out
}
