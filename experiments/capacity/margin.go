package capacity

import (
	"slices"

	"github.com/sparseserve/sparseserve/experiments/config"
)

// margin is the reserve of an offer beyond the load and service level asked for, because real
// traffic exceeds the expected load at times, a replica may fail, and a prediction has an error.
type margin struct {
	target float64 // the load, and plan.headroom more
	slo    limits  // the service level less the error
	spare  int     // replicas that may be down
}

// Limit is a bound of the service level and the tighter limit that a plan applies to predictions,
// in seconds.
type Limit struct {
	Bound    string  `json:"bound"` // in words
	AskedS   float64 `json:"asked_s"`
	PlannedS float64 `json:"planned_s"`
	Error    float64 `json:"error"`    // of such predictions, as a share
	LateS    float64 `json:"late_s"`   // and in seconds
	Measured bool    `json:"measured"` // or assumed
}

// assumedError is the error of predictions without measurements. It is the largest error that
// README.md names for a P99 of TBT.
const assumedError = 0.15

// lessError returns the limits that apply to predictions for a point. A prediction may be too low
// by a share e and t seconds, so a limit L becomes L (1 - e) - t.
func (l limits) lessError(p *config.Point) (limits, error) {
	c, _, err := classOf(p)
	l.bounds = slices.Clone(l.bounds)
	for i := range l.bounds {
		e, late, _ := c.errorOf(&l.bounds[i])
		l.bounds[i].Limit = less(l.bounds[i].Limit, e, late)
	}
	return l, err
}

// judge makes the run count the requests that miss one of these limits, if each request has to meet
// them.
func (l limits) judge(p *config.Point) {
	if l.Rule == config.SLORequests {
		p.SLO.Hold(l.bounds)
	}
}

// errorOf returns the prediction error of the class for a bound, and whether it was measured. A
// percentile without its own error uses the P99 error if it is high or applies to each request, and
// the mean's error if it is P50.
func (c *class) errorOf(b *config.Bound) (share, late float64, measured bool) {
	like := "p99"
	if b.Stat == "p50" {
		like = "mean"
	}
	for _, stat := range []string{b.Stat, like} {
		if e, ok := c.Error[b.Name+"_"+stat]; ok {
			return e, c.Late[b.Name+"_"+stat], true
		}
	}
	return assumedError, 0, false
}

// less returns a limit minus an error. The seconds may take at most half of the limit.
func less(limit, share, late float64) float64 {
	limit *= 1 - share
	return max(limit-late, limit/2)
}

// limits lists the bounds of an option with their errors.
func (o *option) limits() ([]Limit, error) {
	c, _, err := classOf(&o.Point)
	var all []Limit
	for i := range o.asked.bounds {
		b := &o.asked.bounds[i]
		e, late, measured := c.errorOf(b)
		all = append(all, Limit{b.String(), b.Limit, less(b.Limit, e, late), e, late, measured})
	}
	return all, err
}
