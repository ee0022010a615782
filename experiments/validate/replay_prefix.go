package validate

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
)

// PrefixAuto is Replay.PrefixHit for a record that does not state its prefix cache hits: full
// prefills and full prefix hits are simulated, and the record is compared with the nearer
// simulation.
const PrefixAuto = -1

// PrefixEstimate is the distance of two simulations from a record.
type PrefixEstimate struct {
	Full     AsMeasured `json:"full"`   // with full prefills
	Cached   AsMeasured `json:"cached"` // with whole prompts from the cache
	Requests int        `json:"requests"`
}

// AsMeasured holds simulated over measured median TTFT and mean TPOT.
type AsMeasured struct {
	TTFT float64 `json:"ttft"`
	TPOT float64 `json:"tpot"`
}

func (m AsMeasured) distance() float64 {
	return math.Abs(math.Log(m.TTFT)) + math.Abs(math.Log(m.TPOT))
}

// off returns the error of the median TTFT and, if it is the greater one, of the mean TPOT.
func (m AsMeasured) off() string {
	text := fmt.Sprintf("TTFT %+.0f %%", 100*(m.TTFT-1))
	if math.Abs(math.Log(m.TPOT)) > math.Abs(math.Log(m.TTFT)) {
		text += fmt.Sprintf(", TPOT %+.0f %%", 100*(m.TPOT-1))
	}
	return strings.ReplaceAll(text, "-0 %", "+0 %")
}

// The nearer simulation must have at most nearerBy times the distance of the other, and be nearer
// by at least apart, over at least estimateRequests.
const (
	nearerBy         = 0.5
	apart            = 0.05
	estimateRequests = 50
)

// Told reports whether the record distinguishes the two simulations.
func (v *PrefixEstimate) Told() bool {
	full, cached := v.Full.distance(), v.Cached.distance()
	near, far := min(full, cached), max(full, cached)
	return v.Requests >= estimateRequests && near <= nearerBy*far && far-near >= apart
}

// Hit reports whether the record is compared with the simulation that hits the prefix cache.
func (v *PrefixEstimate) Hit() bool { return v.Told() && v.Cached.distance() < v.Full.distance() }

// choosePrefix simulates the record with full prefills and with prefix cache hits. It keeps the
// nearer simulation, or full prefills if the record does not distinguish them.
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

// asMeasured compares the simulation with the record. A missing figure counts as equal.
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

// mayHit reports whether the configured system is also simulated with prefix hits.
func mayHit(c *config.Point) bool {
	return !c.System.Offload.On && !c.System.Segmented()
}

// String describes the result, and how to override it.
func (v *PrefixEstimate) String() string {
	const start = "The log does not say whether prompts hit the prefix cache. "
	none, all := v.Full.off(), v.Cached.off()
	switch {
	case v.Hit():
		return fmt.Sprintf(start+"Hits fit better (%s, no hits %s), so all prompts hit; "+
			"--prefix-hit 0 simulates no hits.", all, none)
	case v.Told():
		return fmt.Sprintf(start+"No hits fits better (%s, all hits %s), so no hits is simulated; "+
			"--prefix-hit SHARE overrides it.", none, all)
	case v.Requests < estimateRequests:
		return fmt.Sprintf(start+"%d requests are too few to tell (no hits %s, all hits %s), so no hits "+
			"is simulated; --prefix-hit SHARE overrides it.", v.Requests, none, all)
	}
	return fmt.Sprintf(start+"The figures do not tell either (no hits %s, all hits %s), so no "+
		"hits is simulated; --prefix-hit SHARE overrides it.", none, all)
}
