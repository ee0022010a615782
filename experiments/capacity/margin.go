package capacity

import (
	"slices"

	"github.com/sparseserve/sparseserve/experiments/config"
)

// margin is what an offer must hold beyond the load and the service level that are asked for: real
// traffic is more than expected at times, a replica fails, and a prediction has an error.
type margin struct {
	target float64 // the load, and plan.headroom more
	slo    limits  // the service level less the error
	spare  int     // replicas that may be down
}

// Limit is a bound of the service level and what a plan holds predictions to, in seconds.
type Limit struct {
	Bound    string  `json:"bound"` // in words
	AskedS   float64 `json:"asked_s"`
	PlannedS float64 `json:"planned_s"`
	Error    float64 `json:"error"`    // of such predictions, as a share
	LateS    float64 `json:"late_s"`   // and in seconds
	Measured bool    `json:"measured"` // or assumed
}

// assumedError is the error of predictions that nothing was held against. It is the most that
// README.md names for a P99 of TBT.
const assumedError = 0.15

// lessError returns the limits that the predictions for a point are held to. A prediction may be
// too low by its error, a share e and t seconds, so a limit L is planned to L (1 - e) - t.
func (l limits) lessError(p *config.Point) (limits, error) {
	c, _, err := classOf(p)
	l.bounds = slices.Clone(l.bounds)
	for i := range l.bounds {
		e, late, _ := c.errorOf(&l.bounds[i])
		l.bounds[i].Limit = less(l.bounds[i].Limit, e, late)
	}
	return l, err
}

// judge has a run's requests judged by these limits, where each request is: the run itself counts
// those that miss one.
func (l limits) judge(p *config.Point) {
	if !l.requests {
		return
	}
	s := &p.SLO
	fields := map[string]*float64{"ttft": &s.TTFTS, "tbt": &s.TBTS, "tpot": &s.TPOTS, "e2e": &s.E2ES,
		"delay": &s.DelayS}
	for _, b := range l.bounds {
		*fields[b.Name] = b.Limit
	}
}

// errorOf is the error of the class's predictions of what a bound bounds, and whether it was
// measured. Where a percentile has none of its own, that of P99 is taken for high ones and for each
// request's own, that of the mean for P50.
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

// less is a limit less an error, at least half of what the share leaves of it.
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
