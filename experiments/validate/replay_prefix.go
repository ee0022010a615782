package validate

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
)

// PrefixAuto is Replay.PrefixHit of a record that does not say how much of its prompts came from a
// prefix cache: full prefills are simulated, and whole prompts from the cache, and the record is
// compared with the nearer.
const PrefixAuto = -1

// PrefixEstimate is how far two simulations of a record are from it.
type PrefixEstimate struct {
	Full     AsMeasured `json:"full"`   // with full prefills
	Cached   AsMeasured `json:"cached"` // with whole prompts from the cache
	Requests int        `json:"requests"`
}

// AsMeasured is simulated over measured of median TTFT and of mean TPOT.
type AsMeasured struct {
	TTFT float64 `json:"ttft"`
	TPOT float64 `json:"tpot"`
}

func (m AsMeasured) distance() float64 {
	return math.Abs(math.Log(m.TTFT)) + math.Abs(math.Log(m.TPOT))
}

func (m AsMeasured) String() string {
	return strings.ReplaceAll(fmt.Sprintf("median TTFT %+.1f %% and mean TPOT %+.1f %% off",
		100*(m.TTFT-1), 100*(m.TPOT-1)), "-0.0 %", "+0.0 %")
}

// The nearer simulation has to be at most nearerBy as far from the record as the other, and nearer
// by at least apart, over at least estimateRequests.
const (
	nearerBy         = 0.5
	apart            = 0.05
	estimateRequests = 50
)

// Told says whether the record tells the simulations apart.
func (v *PrefixEstimate) Told() bool {
	full, cached := v.Full.distance(), v.Cached.distance()
	near, far := min(full, cached), max(full, cached)
	return v.Requests >= estimateRequests && near <= nearerBy*far && far-near >= apart
}

// Hit says that the record is compared with prompts from the cache.
func (v *PrefixEstimate) Hit() bool { return v.Told() && v.Cached.distance() < v.Full.distance() }

// choosePrefix simulates the record with full prefills and with prompts from the prefix cache, and
// keeps the nearer, or full prefills where the record does not tell them apart.
func (r *Replay) choosePrefix(ctx context.Context, out *ReplayReport) error {
	start := *out
	if err := r.simulate(ctx, out); err != nil || !mayHit(out.Config) {
		return err
	}
	other := start
	cached := *out.Config
	cached.Workload.PrefixHit = 1
	other.Config = &cached
	if err := r.simulate(ctx, &other); err != nil {
		return err
	}
	v := &PrefixEstimate{Full: out.asMeasured(), Cached: other.asMeasured(),
		Requests: len(out.Requests)}
	if v.Hit() {
		*out = other
	}
	out.Prefix = v
	return nil
}

// asMeasured compares the simulation with the record; a figure that there is not counts as equal.
func (r *ReplayReport) asMeasured() AsMeasured {
	m := AsMeasured{1, 1}
	for _, c := range r.Comparisons {
		switch {
		case c.Stage != AllStages || c.Measured <= 0 || c.Simulated <= 0:
		case c.Metric == "ttft_p50_s":
			m.TTFT = c.Simulated / c.Measured
		case c.Metric == "tpot_mean_s":
			m.TPOT = c.Simulated / c.Measured
		}
	}
	return m
}

// mayHit says whether the configured system is simulated with prefix hits.
func mayHit(c *config.Config) bool {
	s := &c.Systems[0]
	return !s.Offload.On && (s.Prefill.Split == "plain" || s.Prefill.Split == "chunked")
}

// String says in a sentence what was found and how to choose otherwise.
func (v *PrefixEstimate) String() string {
	found := fmt.Sprintf("%s with full prefills, %s with prompts from the cache", v.Full, v.Cached)
	switch {
	case v.Hit():
		return found + ": simulated as prefix cache hits (--prefix-hit 0 for full prefills)"
	case v.Told():
		return found + ": simulated as full prefills (--prefix-hit SHARE for hits)"
	case v.Requests < estimateRequests:
		found = fmt.Sprintf("%d requests are too few to tell whether prompts came from it; %s",
			v.Requests, found)
	default:
		found += ": this does not tell them apart"
	}
	return found + "; full prefills are simulated (--prefix-hit SHARE for hits)"
}

// Where prompts come from the cache, the first coldSeconds of a record find it empty: its P99 of
// TTFT is said without them where its error is smaller by coldMatters.
const coldSeconds, coldMatters = 30, 0.1

// cold says what the error of P99 TTFT is without the first seconds of a record, in which the
// prefix cache was empty; nothing where that hardly differs or too few requests are left.
func (r *ReplayReport) cold() string {
	warm := slices.IndexFunc(r.Requests, func(q Replayed) bool {
		return q.Measured.At.Seconds() >= coldSeconds
	})
	if r.Prefix == nil || !r.Prefix.Hit() || warm <= 0 || len(r.Requests)-warm < FewForP99 {
		return ""
	}
	p99 := func(all []RecordComparison) *RecordComparison {
		i := slices.IndexFunc(all, func(c RecordComparison) bool {
			return strings.HasPrefix(c.Metric, "ttft_p99")
		})
		return &all[i]
	}
	all, without := p99(r.Comparisons), p99(compareReplayed(r.Name, AllStages, r.Requests[warm:]))
	if all.Error == nil || without.Error == nil ||
		math.Abs(*all.Error)-math.Abs(*without.Error) < coldMatters {
		return ""
	}
	return fmt.Sprintf("the cache was empty at first: without the first %d s P99 TTFT is %.3g s, "+
		"simulated %.3g s (%+.1f %%; with them %+.1f %%)", coldSeconds, without.Measured,
		without.Simulated, 100**without.Error, 100**all.Error)
}
